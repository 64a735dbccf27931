-- Stores a batch in a shard's own table, past Citus. The lock on `patients` is that of every insert, which an erasure
-- waits for, and any change of the table; the other one is what Citus takes for an insert (5 is SHARE). Each statement
-- sees what was committed before it, as the writers' connections see to. NULL: the shard does not lie here.
CREATE OR REPLACE FUNCTION {name} RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp SET plan_cache_mode = force_generic_plan AS $function$
DECLARE
    number bigint;
    stored_here bigint;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN RETURN NULL; END IF;
    PERFORM lock_relation_if_exists('public.patients', 'ROW EXCLUSIVE');
    PERFORM lock_shard_metadata(5, ARRAY[{id}]);
    IF NOT EXISTS (SELECT FROM pg_dist_placement
            WHERE shardid = {id} AND groupid = (SELECT groupid FROM pg_dist_local_group)) THEN
        RETURN NULL;
    END IF;
    -- NULL: the shard was moved, and its generation is still to be found.
    SELECT (max(generation) << 44) + txid_current() INTO number FROM {places}
        HAVING every(group_id = (SELECT groupid FROM pg_dist_local_group));
    IF number IS NULL THEN number := feed_number($1[1]); END IF;
    {insert};
    GET DIAGNOSTICS stored_here = ROW_COUNT;
    RETURN stored_here;
END $function$;
