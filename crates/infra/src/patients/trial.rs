//! A trial of storing patients, for an operator who asks whether the service could: nothing of it remains.

use diesel::connection::SimpleConnection;

use crate::database::cluster::spread::is_spread;
use crate::database::schema::schema_error::{CheckConnection, SchemaError, failed};
use crate::patients::batch::store::write_and_roll_back;

/// More than a page of PostgreSQL holds: one patient may fit into the last page of a full disk.
const PATIENTS: usize = 8;
/// A lock that lasts longer holds up the service, too.
const LOCK_TIMEOUT: &str = "SET lock_timeout = '2s'";

/// Outcome of a trial that found no fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// Patients were stored, and rolled back.
    Passed,
    /// The database is a cluster, on which a patient of no organisation has no shard.
    Spread,
}

/// Stores patients as the role of this connection, and rolls back.
pub fn try_to_store(over: &mut CheckConnection) -> Result<Trial, SchemaError> {
    if is_spread(&mut over.0).map_err(failed)? {
        return Ok(Trial::Spread);
    }
    over.0.batch_execute(LOCK_TIMEOUT).map_err(failed)?;
    write_and_roll_back(&mut over.0, PATIENTS).map_err(failed)?;
    Ok(Trial::Passed)
}
