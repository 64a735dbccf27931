//! Why a batch was not stored, found out over the connection on which it failed.

use std::time::{Duration, Instant};

use diesel::pg::PgConnection;
use diesel::result::Error;
use intake_domain::{Source, StoreError};

use super::insert::InsertBatch;
use super::task::Request;
use crate::database::schema::grants::missing_grants;
use crate::diesel_errors::{Failure, failure, without_row_values};
use crate::metrics::note_error;

/// Reason why a batch was not stored.
pub(crate) enum Cause {
    /// The database cannot be reached, or cannot write: trying again may help.
    Away(Source),
    /// The statement did nothing; trying again may help.
    Unable(Source),
    /// Another transaction has locked a row, or the table.
    Locked,
    /// The database refused the batch.
    Refused(StoreError),
    /// The database would refuse any batch, because the service's role lacks a privilege.
    Forbidden(String),
}

/// A batch that was not answered.
pub(crate) struct Failed {
    pub(crate) cause: Cause,
    /// True if the rows may be stored all the same.
    pub(crate) may_be_stored: bool,
}

/// Sorts the error. Diesel does not distinguish a lock timeout from other errors: it shows in the time that the
/// statement took, so `exceeded` is given if that was the lock timeout or more.
pub(super) fn failed(
    connection: &mut PgConnection,
    requests: &[Request],
    error: Error,
    is_stored: bool,
    exceeded: Option<Duration>,
) -> Failed {
    note_error(&error);
    let is_locked = exceeded.is_some() && requests.iter().any(Request::may_be_locked);
    let cause = match failure(&error) {
        Failure::Transient => return Failed { cause: Cause::Away(without_row_values(error)), may_be_stored: true },
        Failure::Refused => refused(error),
        // Trying the rows separately will show which one is locked.
        Failure::Unknown if is_locked && requests.len() > 1 => Cause::Locked,
        Failure::Unknown => explained(connection, requests, error, is_locked),
    };
    Failed { cause, may_be_stored: is_stored }
}

/// Result of EXPLAIN for a batch.
enum Explained {
    /// One of its rows is at fault.
    Row,
    /// The statement is at fault, with any rows.
    Statement,
    /// Neither: the cause is a lock on the table, or passes.
    Nothing,
}

/// EXPLAIN can be cancelled as the insert was, or exceed the role's time for a statement: a row is at fault if EXPLAIN
/// says so every time.
fn explained(connection: &mut PgConnection, requests: &[Request], error: Error, is_locked: bool) -> Cause {
    const TRIES: usize = 8;
    let found = (0..TRIES).map(|_| explain(connection, requests)).find(|found| !matches!(found, Explained::Row));
    let missing = match found {
        None | Some(Explained::Row) => return refused(error),
        Some(Explained::Statement) => missing_grants(connection),
        Some(Explained::Nothing) => None,
    };
    match missing {
        Some(missing) => Cause::Forbidden(missing.to_string()),
        None if is_locked => Cause::Locked,
        None => Cause::Unable(without_row_values(error)),
    }
}

/// EXPLAIN of a batch whose data is at fault fails, too, and EXPLAIN of an empty batch does not. If EXPLAIN fails after
/// a long time, the cause is a lock on the table, not the batch.
fn explain(connection: &mut PgConnection, requests: &[Request]) -> Explained {
    const LONG: Duration = Duration::from_millis(10);
    let started = Instant::now();
    let mut explain =
        |requests: &[Request]| InsertBatch::from_iter(requests.iter().filter_map(Request::row)).explain(connection);
    if explain(requests).is_ok() || started.elapsed() >= LONG {
        Explained::Nothing
    } else if explain(&[]).is_ok() {
        Explained::Row
    } else {
        Explained::Statement
    }
}

fn refused(error: Error) -> Cause {
    Cause::Refused(StoreError::Unexpected(without_row_values(error)))
}
