-- The numbers by which `intake export` finds what was stored since its last run: those of the node that holds the shard,
-- beginning with the generation of the shard, which grows whenever the shard lies on another node than before. Rows keep
-- their numbers when they are copied, and the generation lies in the shard. So the numbers of a shard only grow, and a
-- mark, which lies in the shard too, says what was seen there wherever it lies.
--
-- `feed_places` has one row for each shard, whose organisation is any of the shard's: where the shard was when it was
-- last looked at. A shard without a row was split from another one, or nothing was numbered there yet.
CREATE TABLE feed_places (
    organisation_id uuid PRIMARY KEY,
    generation bigint NOT NULL,
    group_id integer NOT NULL,
    system_identifier bigint NOT NULL
);

-- A statement that Citus passes on holds Citus's lock already, on the node to which it came. It must not wait for that
-- lock here: a move takes it on each node in turn. Marks are made past Citus, and take it.
CREATE FUNCTION feed_generation(organisation uuid) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp SET citus.enable_manual_changes_to_shards = on AS $function$
DECLARE
    shard bigint := get_shard_id_for_distribution_column('patients', organisation);
    place text := shard_name('feed_places', get_shard_id_for_distribution_column('feed_places', organisation));
    here integer := (SELECT groupid FROM pg_dist_local_group);
    look text := format('SELECT max(generation) FROM %s HAVING every(group_id = %s)', place, here);
    found bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_dist_placement WHERE shardid = shard AND groupid = here) THEN
        RAISE serialization_failure USING MESSAGE = 'the patients of the organisation lie on another node';
    END IF;
    EXECUTE look INTO found;
    IF found IS NULL THEN
        EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', place);
        EXECUTE look INTO found;
    END IF;
    IF found IS NULL THEN
        EXECUTE format(
            'SELECT 1 + coalesce((SELECT max(generation) FROM %s), greatest((SELECT max(created_in) FROM %s),
                (SELECT max(erased_in) FROM %s), (SELECT max(recorded_in) FROM %s),
                (SELECT max(next) FROM %s)) >> 44, 0)',
            place, shard_name('patients', shard),
            shard_name('erasures', get_shard_id_for_distribution_column('erasures', organisation)),
            shard_name('audit_entries', get_shard_id_for_distribution_column('audit_entries', organisation)),
            shard_name('feed_marks', get_shard_id_for_distribution_column('feed_marks', organisation))
        ) INTO found;
        EXECUTE format('DELETE FROM %s', place);
        EXECUTE format('INSERT INTO %s SELECT $1, $2, $3, system_identifier FROM pg_control_system()', place)
            USING organisation, found, here;
    END IF;
    RETURN found << 44;
END $function$;

REVOKE ALL ON FUNCTION feed_generation FROM public;

CREATE OR REPLACE FUNCTION feed_number(organisation uuid) RETURNS bigint LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $function$
    SELECT txid_current() + feed_generation(organisation)
$function$;

CREATE OR REPLACE FUNCTION feed_added(organisation uuid) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, public, pg_temp AS $function$
BEGIN
    PERFORM lock_shard_metadata(5, ARRAY[get_shard_id_for_distribution_column('patients', organisation)]);
    RETURN feed_generation(organisation);
END $function$;

CREATE OR REPLACE FUNCTION feed_origin(organisation uuid, OUT first bigint, OUT is_whole boolean) LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
BEGIN
    -- The number of a mark tells in which generation it was made.
    first := feed_added(organisation);
    EXECUTE format(
        'SELECT every(place.system_identifier = here.system_identifier) FROM %s AS place, pg_control_system() AS here',
        shard_name('feed_places', get_shard_id_for_distribution_column('feed_places', organisation))
    ) INTO is_whole;
END $function$;

-- Where Citus itself would give a number, which would be that of another node, there is an error that lets the service
-- try again: it has not noticed yet that the register is spread.
CREATE FUNCTION feed_unnumbered() RETURNS bigint LANGUAGE plpgsql STABLE AS $function$
BEGIN
    RAISE serialization_failure USING MESSAGE = 'the register is spread: rows need the number of the node that holds them';
END $function$;

ALTER TABLE patients ALTER created_in SET DEFAULT feed_unnumbered();

ALTER TABLE erasures ALTER erased_in SET DEFAULT feed_unnumbered();

ALTER TABLE audit_entries ALTER recorded_in SET DEFAULT feed_unnumbered();

-- Every node is asked for these, by readers, by the service and by erasures.
SELECT create_distributed_function('feed_unnumbered()');

SELECT create_distributed_function('feed_generation(uuid)');

SELECT create_distributed_function('feed_added(uuid)');

SELECT create_distributed_function('feed_number(uuid)');

SELECT create_distributed_function('feed_now(uuid)');

SELECT create_distributed_function('feed_origin(uuid)');

SELECT create_distributed_function('feed_open(uuid, uuid, uuid)');

SELECT create_distributed_function('feed_mark(uuid, uuid, uuid)');

SELECT create_distributed_function('feed_record_export(uuid, uuid, bigint)');
