//! Why a batch was not stored, found out over the connection on which it failed.

use std::time::{Duration, Instant};

use diesel::pg::PgConnection;
use intake_domain::Source;

use crate::database::schema_error::SchemaError;
use crate::diesel_errors::{Failure, failure, without_row_values};
use crate::metrics::note_error;
use crate::patients::batch::{self, Attempt, Failed, Fault, Unanswered, fault};
use crate::patients::job::Answer;
use crate::patients::shared::Shared;

/// Why a batch was not stored.
pub(crate) enum Interruption {
    /// The database cannot be reached, or cannot write: trying again may help.
    Away(Source),
    /// The statement did nothing; trying again may help.
    Unable(Source),
    /// Another transaction holds a row, or the table.
    Locked,
    /// The database refused the batch.
    Refused(diesel::result::Error),
    /// The database would refuse any batch.
    Forbidden(SchemaError),
}

/// An interruption, and whether the rows may be stored all the same.
pub(crate) struct Interrupted {
    pub(crate) interruption: Interruption,
    pub(crate) may_be_stored: bool,
}

impl Interrupted {
    pub(crate) fn not_stored(interruption: Interruption) -> Self {
        Self { interruption, may_be_stored: false }
    }
}

/// Stores a batch: one answer for each attempt, in their order.
pub(crate) fn store(
    connection: &mut PgConnection,
    attempts: &[Attempt],
    shared: &Shared,
    lock_timeout: Duration,
) -> Result<Vec<Result<Answer, Unanswered>>, Interrupted> {
    let started = Instant::now();
    batch::store(connection, attempts, shared).map_err(|Failed { error, is_stored }| {
        // Diesel does not distinguish a lock timeout from other errors: it shows in the time that the statement took.
        let took_long = started.elapsed() >= lock_timeout;
        let is_locked = took_long && attempts.iter().any(Attempt::may_be_held);
        note_error(&error);
        let interruption = match failure(&error) {
            Failure::Transient => {
                return Interrupted {
                    interruption: Interruption::Away(without_row_values(error)),
                    may_be_stored: true,
                };
            }
            Failure::Refused => Interruption::Refused(error),
            // Trying the rows separately will show which one is held.
            Failure::Unknown if is_locked && attempts.len() > 1 => Interruption::Locked,
            Failure::Unknown => match fault(connection, attempts, &shared.uses.homes, lock_timeout) {
                Fault::Batch => Interruption::Refused(error),
                Fault::Grants(missing) => Interruption::Forbidden(missing),
                Fault::Neither if is_locked => Interruption::Locked,
                Fault::Neither => Interruption::Unable(without_row_values(error)),
            },
        };
        Interrupted { interruption, may_be_stored: is_stored }
    })
}
