//! A trial of storing patients, for an operator who asks whether the service could: nothing of it remains.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::Integer;

use crate::database::cluster::spread::is_spread;
use crate::database::connecting::connect::{ConnectError, ask, connect};
use crate::database::connecting::url::DatabaseUrl;
use crate::database::rows::Named;
use crate::database::schema::schema_error::{CheckConnection, SchemaError, failed};
use crate::patients::batch::store::write_and_roll_back;

/// More than a page of PostgreSQL holds: one patient may fit into the last page of a full disk.
const PATIENTS: usize = 8;
/// A lock that lasts longer holds up the service, too.
const LOCK_TIMEOUT: &str = "SET lock_timeout = '2s'";

/// Writes to PostgreSQL's log, and to no table, so that the commit waits as that of a patient does.
const COMMIT: &str = "SELECT pg_logical_emit_message(true, 'intake', 'trial')";
/// Says what a session waits for, and ends its wait.
const WAIT: &str = "SELECT format('%s %s (synchronous_standby_names is %L; standbys that are connected: %s)',
        wait_event_type, wait_event, current_setting('synchronous_standby_names'),
        (SELECT count(*) FROM pg_stat_replication)) AS name, pg_cancel_backend(pid)
    FROM pg_stat_activity WHERE pid = $1";

/// Outcome of a trial that found no fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// Patients were stored, and rolled back.
    Passed,
    /// The database is a cluster, on which a patient of no organisation has no shard.
    Spread,
}

/// Stores patients as the role of this connection, and rolls back. Then commits something else, which must not take
/// longer than this.
pub fn try_to_store(over: &mut CheckConnection, url: &DatabaseUrl, deadline: Duration) -> Result<Trial, SchemaError> {
    if is_spread(&mut over.0).map_err(failed)? {
        return Ok(Trial::Spread);
    }
    over.0.batch_execute(LOCK_TIMEOUT).map_err(failed)?;
    write_and_roll_back(&mut over.0, PATIENTS).map_err(failed)?;
    let connection = connect(url, "")?;
    let pid = connection.pid;
    match ask(connection, deadline, |connection| diesel::sql_query(COMMIT).execute(connection)) {
        Ok((_, committed)) => committed.map(|_| Trial::Passed).map_err(failed),
        Err(ConnectError::Hangs) => {
            let wait = diesel::sql_query(WAIT).bind::<Integer, _>(pid).get_result::<Named>(&mut over.0);
            Err(SchemaError::CommitWaits(wait.map_err(failed)?.name))
        }
        Err(error) => Err(error.into()),
    }
}
