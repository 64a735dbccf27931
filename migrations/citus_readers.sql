-- Lets readers see what they may, once the tables are distributed. Citus reads shards as the role that asks, not as the
-- owner of a view. So the tables themselves hide rows from readers, and the views are without a condition. A role that
-- is no reader sees what its grants let it see. The readers are looked up in this node's copy, because within a
-- statement on a shard Citus looks up nothing.
DO $do$ BEGIN
    EXECUTE format(
        $make$CREATE FUNCTION feed_readable(reader name) RETURNS uuid[] LANGUAGE sql STABLE SECURITY DEFINER
            SET search_path = pg_catalog, public, pg_temp AS $function$
            SELECT CASE WHEN bool_or(organisation_id IS NULL) THEN NULL ELSE array_agg(organisation_id) END
            FROM %s WHERE pg_has_role(reader, to_regrole(quote_ident(role)), 'USAGE')
        $function$$make$,
        (SELECT shard_name('readers', shardid) FROM pg_dist_shard WHERE logicalrelid = 'readers'::regclass)
    );
END $do$;

SELECT create_distributed_function('feed_readable(name)');

ALTER TABLE patients ENABLE ROW LEVEL SECURITY;

CREATE POLICY anyone_adds ON patients FOR INSERT WITH CHECK (true);

CREATE POLICY readers_read_their_own ON patients FOR SELECT
    USING (coalesce(organisation_id = ANY (feed_readable(current_user)), true));

DO $do$ BEGIN
    EXECUTE 'CREATE OR REPLACE VIEW patients_v1 AS ' || split_part(pg_get_viewdef('patients_v1'::regclass), ' WHERE ', 1);
END $do$;

ALTER TABLE erasures ENABLE ROW LEVEL SECURITY;

CREATE POLICY anyone_adds ON erasures FOR INSERT WITH CHECK (true);

CREATE POLICY readers_read_their_own ON erasures FOR SELECT
    USING (coalesce(organisation_id = ANY (feed_readable(current_user)), true));

DO $do$ BEGIN
    EXECUTE 'CREATE OR REPLACE VIEW erasures_v1 AS ' || split_part(pg_get_viewdef('erasures_v1'::regclass), ' WHERE ', 1);
END $do$;
