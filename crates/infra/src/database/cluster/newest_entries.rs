//! What the node that holds audit entries says about them: the newest of each of its shards, whose numbers cannot be
//! compared with those of other shards, and which transactions a statement does not see there. Citus runs these
//! functions where rows of the value lie that they are given.

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;

/// Number of entries that are remembered: more than are recorded while a transaction is open that records one.
pub(crate) const REMEMBERED: i64 = 20;

/// The newest entries of the shards on one node.
fn newest() -> String {
    format!(
        "
    CREATE FUNCTION newest_audit_entries(near uuid, OUT organisations uuid[], OUT ids uuid[]) LANGUAGE plpgsql STABLE
        SET search_path = pg_catalog, public, pg_temp AS $function$
    BEGIN
        EXECUTE (
            SELECT format(
                'SELECT array_agg(organisation_id), array_agg(id) FROM (%s) AS newest',
                string_agg(
                    format(
                        '(SELECT organisation_id, id FROM %s ORDER BY recorded_in DESC LIMIT {REMEMBERED})',
                        shard_name(logicalrelid, shardid)
                    ),
                    ' UNION ALL '
                )
            )
            FROM pg_dist_shard JOIN pg_dist_placement USING (shardid) JOIN pg_dist_local_group USING (groupid)
            WHERE logicalrelid = 'audit_entries'::regclass
        ) INTO organisations, ids;
    END $function$"
    )
}

/// Citus passes it on, and holds its own lock meanwhile: this must not wait for that lock, as `feed_now` does.
const NOW: &str = "
    CREATE OR REPLACE FUNCTION audit_now(organisation uuid, OUT next bigint, OUT running bigint[]) LANGUAGE sql STABLE
        SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $function$
        SELECT txid_snapshot_xmax(seen) + first, ARRAY(SELECT number + first FROM txid_snapshot_xip(seen) AS number)
        FROM feed_generation(organisation) AS first, txid_current_snapshot() AS seen
    $function$";

/// Makes the functions, once the tables are distributed.
pub(super) fn make(connection: &mut PgConnection) -> QueryResult<()> {
    connection.batch_execute(&newest())?;
    connection.batch_execute(NOW)?;
    for (function, value) in [("newest_audit_entries", "near"), ("audit_now", "organisation")] {
        let query = format!(
            "SELECT create_distributed_function('{function}(uuid)', '{value}', colocate_with => 'audit_entries')"
        );
        diesel::sql_query(query).execute(connection)?;
    }
    Ok(())
}
