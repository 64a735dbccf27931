//! Whether the service can work with its database: what a start refuses may also happen while the service runs.

use std::time::Duration;

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{Environment, StoreError};

use crate::database::connecting::clock;
use crate::database::connecting::pool::Database;
use crate::database::connecting::share::Share;
use crate::database::schema::environment::stamp;
use crate::database::schema::grants::missing;
use crate::database::schema::migrations::{has_all_known, has_versions};
use crate::diesel_errors::StatementFailed;

/// True on a standby, and where the server, the database or the role only reads by default.
const ONLY_READS: &str = "SELECT 1 WHERE current_setting('transaction_read_only')::boolean";
/// Without it the versions cannot be compared.
const MAY_READ_VERSIONS: &str = "SELECT 1 WHERE has_table_privilege('__diesel_schema_migrations', 'SELECT')";

/// Reason why the service cannot work with its database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unready {
    /// The database does not answer.
    Unreachable,
    /// The database answers, and a query of the check failed, for this cause.
    Failed(String),
    /// The database refuses writes.
    ReadOnly,
    /// The schema is older than the program.
    Unmigrated,
    /// The database belongs to the other environment.
    OtherEnvironment,
    /// The role lacks privileges that the service needs.
    MissingGrants,
}

impl Database {
    /// Checks what the service needs of its database, within this time.
    pub async fn readiness(&self, environment: Environment, limit: Duration) -> Result<(), Unready> {
        let checked = self.run_within(limit, Share::Common, move |connection| check(connection, environment)).await;
        let found = checked.unwrap_or_else(|error| Err(unready(error)));
        if found == Err(Unready::ReadOnly) {
            // A new connection may be allowed to write.
            self.doubt_all();
        }
        found
    }
}

fn unready(error: StoreError) -> Unready {
    match error {
        StoreError::Unavailable(cause) if !cause.is::<StatementFailed>() => Unready::Unreachable,
        StoreError::Unavailable(cause) | StoreError::Locked(cause) | StoreError::Unexpected(cause) => {
            Unready::Failed(cause.to_string())
        }
        StoreError::Overloaded | StoreError::SessionEnded | StoreError::RoleTakenAway => Unready::Unreachable,
    }
}

/// The inner result is the answer, the outer one says whether there is one.
fn check(connection: &mut PgConnection, environment: Environment) -> QueryResult<Result<(), Unready>> {
    // A clock can go wrong while the connections last.
    clock::look(connection)?;
    if diesel::sql_query(ONLY_READS).execute(connection)? > 0 {
        return Ok(Err(Unready::ReadOnly));
    }
    if !has_versions(connection)? {
        return Ok(Err(Unready::Unmigrated));
    }
    if diesel::sql_query(MAY_READ_VERSIONS).execute(connection)? == 0 {
        return Ok(Err(Unready::MissingGrants));
    }
    if !has_all_known(connection)? {
        return Ok(Err(Unready::Unmigrated));
    }
    if !missing(connection, None)?.is_empty() {
        return Ok(Err(Unready::MissingGrants));
    }
    let is_of_another = |stamped: String| stamped != environment.as_str();
    Ok(if stamp(connection)?.is_some_and(is_of_another) { Err(Unready::OtherEnvironment) } else { Ok(()) })
}
