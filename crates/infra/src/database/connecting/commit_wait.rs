//! Commits that wait for a synchronous standby. PostgreSQL waits without end and reports nothing, so its sessions are
//! looked at.

use std::time::Duration;

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::result::{DatabaseErrorKind, Error};
use diesel::sql_types::Double;

use crate::database::rows::Named;

/// A role sees why its own sessions wait.
const WAITING: &str = "SELECT current_setting('synchronous_standby_names') AS name FROM pg_stat_activity
    WHERE wait_event = 'SyncRep' AND query_start < clock_timestamp() - make_interval(secs => $1) LIMIT 1";

/// Returns what commits of this role wait for, if one has waited longer than this.
pub(crate) fn commit_wait(connection: &mut PgConnection, limit: Duration) -> QueryResult<Option<String>> {
    let waiting = diesel::sql_query(WAITING).bind::<Double, _>(limit.as_secs_f64());
    let found = waiting.get_result::<Named>(connection).optional()?;
    Ok(found.map(|Named { name }| {
        format!("commits wait for a synchronous standby (SyncRep), as synchronous_standby_names = '{name}' asks for")
    }))
}

/// Fails if a commit of this role has waited longer than this.
pub(crate) fn assert_commits(connection: &mut PgConnection, limit: Duration) -> QueryResult<()> {
    match commit_wait(connection, limit)? {
        None => Ok(()),
        Some(wait) => Err(Error::DatabaseError(DatabaseErrorKind::Unknown, Box::new(wait))),
    }
}
