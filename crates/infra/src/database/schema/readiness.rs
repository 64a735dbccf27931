//! Whether the service can work with its database: what a start refuses may also happen while the service runs.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::Environment;

use crate::database::connecting::pool::Database;
use crate::database::connecting::share::Share;
use crate::database::schema::environment::stamp;
use crate::database::schema::grants::missing;
use crate::database::schema::migrations::{has_all_known, has_versions};

/// True on a standby, and where the server, the database or the role only reads by default.
const ONLY_READS: &str = "SELECT 1 WHERE current_setting('transaction_read_only')::boolean";
/// Without it the versions cannot be compared.
const MAY_READ_VERSIONS: &str = "SELECT 1 WHERE has_table_privilege('__diesel_schema_migrations', 'SELECT')";

/// Reason why the service cannot work with its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unready {
    /// The database does not answer.
    Unreachable,
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
    /// Checks what the service needs of its database. Takes up to the deadline if the database does not answer.
    pub async fn readiness(&self, environment: Environment) -> Result<(), Unready> {
        let found = self.run(Share::Common, move |connection| Ok(check(connection, environment)?.err())).await;
        let found = found.unwrap_or(Some(Unready::Unreachable));
        if found == Some(Unready::ReadOnly) {
            // A new connection may be allowed to write.
            self.doubt_all();
        }
        found.map_or(Ok(()), Err)
    }
}

/// The inner result is the answer, the outer one says whether there is one.
fn check(connection: &mut PgConnection, environment: Environment) -> QueryResult<Result<(), Unready>> {
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
