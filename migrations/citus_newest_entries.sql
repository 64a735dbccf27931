-- The newest audit entries of each shard on one node, whose numbers cannot be compared with those of other shards, and
-- which transactions a statement does not see there. Citus runs these functions where rows of the given value lie.
CREATE FUNCTION newest_audit_entries(near uuid, remembered integer, OUT organisations uuid[], OUT ids uuid[])
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public, pg_temp AS $function$
BEGIN
    EXECUTE (
        SELECT format(
            'SELECT array_agg(organisation_id), array_agg(id) FROM (%s) AS newest',
            string_agg(
                format(
                    '(SELECT organisation_id, id FROM %s ORDER BY recorded_in DESC LIMIT %s)',
                    shard_name(logicalrelid, shardid), remembered
                ),
                ' UNION ALL '
            )
        )
        FROM pg_dist_shard JOIN pg_dist_placement USING (shardid) JOIN pg_dist_local_group USING (groupid)
        WHERE logicalrelid = 'audit_entries'::regclass
    ) INTO organisations, ids;
END $function$;

-- Citus passes it on, and holds its own lock meanwhile: this must not wait for that lock, as `feed_now` does.
CREATE OR REPLACE FUNCTION audit_now(organisation uuid, OUT next bigint, OUT running bigint[]) LANGUAGE sql STABLE
    SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
    SELECT txid_snapshot_xmax(seen) + first, ARRAY(SELECT number + first FROM txid_snapshot_xip(seen) AS number)
    FROM feed_generation(organisation) AS first, txid_current_snapshot() AS seen
$function$;

SELECT create_distributed_function('newest_audit_entries(uuid, integer)', 'near', colocate_with => 'audit_entries');

SELECT create_distributed_function('audit_now(uuid)', 'organisation', colocate_with => 'audit_entries');
