//! How long PostgreSQL itself works on what the pool asks of it. A change that still waits for a lock when its caller
//! has given up would be made when the lock is free, long after the refusal.

use std::time::{Duration, Instant};

use diesel::QueryResult;
use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::result::Error;

use crate::database::connecting::connect::OpenConnection;
use crate::database::connecting::lock_wait::{Look, Undone};
use crate::database::connecting::url::DatabaseUrl;
use crate::diesel_errors::{Failure, failure};
use crate::metrics::note_error;

/// Time for which a statement waits for a lock: it is given up by PostgreSQL, and its transaction undone, before it
/// would be abandoned.
const LOCK_TIMEOUT: Duration = Duration::from_millis(800);
/// A try that may wait for a lock takes this long.
pub(crate) const LOCKED_TRY: Duration = Duration::from_secs(1);

/// The settings of a connection whose work may take this long in all.
pub(crate) fn settings(deadline: Duration) -> String {
    format!("{}; SET statement_timeout = {}", lock_timeout(LOCK_TIMEOUT), deadline.as_millis().max(1))
}

/// Does the work, with less patience for locks if there is little time left. Says who holds a lock for which it waited
/// in vain.
pub(crate) fn within<T>(
    connection: &mut OpenConnection,
    url: &DatabaseUrl,
    until: Instant,
    work: impl Fn(&mut PgConnection) -> QueryResult<T>,
) -> Result<T, Undone<Error>> {
    let left = until.saturating_duration_since(Instant::now());
    let is_short = left < LOCKED_TRY;
    let limit = if is_short { left * 4 / 5 } else { LOCK_TIMEOUT };
    if is_short {
        connection.batch_execute(&lock_timeout(limit)).map_err(Undone::Failed)?;
    }
    let look = Look::begin(url, connection.pid, limit);
    let done = work(connection).inspect_err(note_error);
    // What comes later is not ended.
    look.stop();
    if is_short {
        // A connection on which this fails does nothing more.
        drop(connection.batch_execute(&lock_timeout(LOCK_TIMEOUT)));
    }
    done.map_err(|error| match look.end().holders.filter(|_| failure(&error) == Failure::Unknown) {
        Some(holders) => Undone::Locked(holders),
        None => Undone::Failed(error),
    })
}

fn lock_timeout(limit: Duration) -> String {
    format!("SET lock_timeout = {}", limit.as_millis().max(1))
}
