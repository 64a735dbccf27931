//! Why a database cannot be used as it is.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::Environment;

use crate::database::url::DatabaseUrl;
use crate::diesel_errors::without_row_values;

/// Why the schema is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The database cannot be reached.
    #[error("cannot connect to the database")]
    Unreachable(#[source] ConnectionError),
    /// The schema is older than the program.
    #[error("the database is not migrated: run `intake migrate` first")]
    Unmigrated,
    /// No such role to grant anything to.
    #[error("the database has no role {0}: make it first, with CREATE ROLE")]
    NoSuchRole(String),
    /// The role could do more than the service may.
    #[error("the role {0} owns the schema or is a superuser: the service needs a role of its own")]
    PowerfulRole(String),
    /// The database was first used in the other environment.
    #[error("the database belongs to the {stamped} environment and cannot be used in {asked}")]
    OtherEnvironment {
        /// Of the database.
        stamped: String,
        /// Of the program.
        asked: Environment,
    },
    /// The server would lose patients that were acknowledged.
    #[error("a crash of the database could lose acknowledged patients: turn on {0} in its configuration")]
    Forgetful(String),
    /// The schema is newer than the program.
    #[error("the database was migrated by a newer intake ({0}): use that one")]
    Newer(String),
    /// The role could do less than the service must.
    #[error("its role lacks {0}: `intake migrate --service-role NAME` grants it")]
    MissingGrants(String),
    /// A pooler stands before the database, and hands connections on between transactions.
    #[error(
        "a pooler before the database (PgBouncer) shares connections from one transaction to the next: set pool_mode = session there"
    )]
    SharedSessions,
    /// A pooler, or the server, has too few connections.
    #[error("the database, or a pooler before it, serves no second connection: give the service more of them")]
    NoSecondConnection,
    /// Anything else.
    #[error(
        "the schema cannot be read or changed (does the role of DATABASE_URL have its grants? `intake migrate --service-role NAME` gives them)"
    )]
    Failed(#[source] intake_domain::Source),
}

pub(crate) fn connect(url: &DatabaseUrl) -> Result<PgConnection, SchemaError> {
    PgConnection::establish(url.expose()).map_err(SchemaError::Unreachable)
}

pub(crate) fn failed(error: diesel::result::Error) -> SchemaError {
    SchemaError::Failed(without_row_values(error))
}
