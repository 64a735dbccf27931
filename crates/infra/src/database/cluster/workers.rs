//! The workers, each of which has newest audit entries of its own: the entries of one worker are in its log in an
//! order, and a worker can be restored alone.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, Integer, Nullable, Uuid as SqlUuid};
use uuid::Uuid;

use crate::database::cluster::extension::has_citus;
use crate::database::cluster::shards::value_between;

/// Number of entries that are remembered: more than are recorded while a transaction is open that records one.
pub(crate) const REMEMBERED: i64 = 20;

const WORKERS: &str =
    "SELECT DISTINCT ON (groupid) groupid AS number, shardminvalue::integer AS first, shardmaxvalue::integer AS last
    FROM pg_dist_shard JOIN pg_dist_placement USING (shardid)
    WHERE logicalrelid = 'audit_entries'::regclass AND shardminvalue IS NOT NULL ORDER BY groupid, first";

/// A node that holds a part of the audit log, and one of the ranges of hashes that lie there.
#[derive(QueryableByName)]
pub(crate) struct Worker {
    /// Its number, which a standby that takes its place keeps.
    #[diesel(sql_type = Integer)]
    pub(crate) number: i32,
    #[diesel(sql_type = Integer)]
    first: i32,
    #[diesel(sql_type = Integer)]
    last: i32,
}

impl Worker {
    /// The organisations and the ids of the newest entries in each shard there. Not within a transaction, where Citus
    /// passes no function on.
    pub(crate) fn newest_entries(&self, connection: &mut PgConnection) -> QueryResult<Vec<(Uuid, Uuid)>> {
        #[derive(QueryableByName)]
        struct Entries {
            #[diesel(sql_type = Nullable<Array<SqlUuid>>)]
            organisations: Option<Vec<Uuid>>,
            #[diesel(sql_type = Nullable<Array<SqlUuid>>)]
            ids: Option<Vec<Uuid>>,
        }

        // Citus needs the value when it plans.
        let near = value_between(self.first, self.last);
        let query = format!("SELECT organisations, ids FROM newest_audit_entries('{near}', {REMEMBERED})");
        let Entries { organisations, ids } = diesel::sql_query(query).get_result(connection)?;
        Ok(organisations.unwrap_or_default().into_iter().zip(ids.unwrap_or_default()).collect())
    }
}

/// The workers, in the order of their numbers; none on one PostgreSQL.
pub(crate) fn workers(connection: &mut PgConnection) -> QueryResult<Vec<Worker>> {
    if has_citus(connection)? { diesel::sql_query(WORKERS).load(connection) } else { Ok(Vec::new()) }
}
