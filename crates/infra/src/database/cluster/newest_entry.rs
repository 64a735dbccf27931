//! The function that tells the newest audit entry of a worker. It reads the shards of the node on which it runs, and
//! Citus runs it where rows of the value lie that it is given.

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;

const MAKE: &str = "
    CREATE FUNCTION newest_audit_entry(near uuid, OUT organisation_id uuid, OUT id uuid) LANGUAGE plpgsql STABLE
        SET search_path = pg_catalog, public, pg_temp AS $function$
    BEGIN
        EXECUTE (
            SELECT format(
                'SELECT organisation_id, id FROM (%s) AS newest ORDER BY at DESC LIMIT 1',
                string_agg(
                    format('(SELECT organisation_id, id, at FROM %s ORDER BY at DESC LIMIT 1)', shard_name(logicalrelid, shardid)),
                    ' UNION ALL '
                )
            )
            FROM pg_dist_shard JOIN pg_dist_placement USING (shardid) JOIN pg_dist_local_group USING (groupid)
            WHERE logicalrelid = 'audit_entries'::regclass
        ) INTO organisation_id, id;
    END $function$";
const DISTRIBUTE: &str =
    "SELECT create_distributed_function('newest_audit_entry(uuid)', 'near', colocate_with => 'audit_entries')";

/// Makes the function, once the tables are distributed.
pub(super) fn make(connection: &mut PgConnection) -> QueryResult<()> {
    connection.batch_execute(MAKE)?;
    diesel::sql_query(DISTRIBUTE).execute(connection).map(drop)
}
