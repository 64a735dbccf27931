//! Makes an empty PostgreSQL server ready for the service: its database, its schema, and a role with no more privileges
//! than the service needs.

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::Text;

use crate::database::connecting::url::DatabaseUrl;
use crate::database::schema::grants::grant_service_role;
use crate::database::schema::migrate::migrate;
use crate::database::schema::schema_error::{SchemaError, failed};
use crate::embedded::EmbeddedPostgres;

/// The role that the service connects as.
pub const SERVICE_ROLE: &str = "intake_service";

/// The two addresses of a prepared database.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// As the owner of the schema.
    pub owner: DatabaseUrl,
    /// As the service.
    pub service: DatabaseUrl,
}

/// Prepares a database of an embedded server. Steps that are done already are skipped.
pub fn prepare(server: &EmbeddedPostgres, database: &str) -> Result<Prepared, SchemaError> {
    let _lock = server.lock().map_err(|error| SchemaError::Failed(error.into()))?;
    let mut connection =
        PgConnection::establish(server.owner_url("postgres").expose()).map_err(SchemaError::Unreachable)?;
    let is_there = |connection: &mut PgConnection, query: &str, name: &str| {
        diesel::sql_query(query).bind::<Text, _>(name).execute(connection).map(|found| found > 0).map_err(failed)
    };
    if !is_there(&mut connection, "SELECT 1 FROM pg_roles WHERE rolname = $1", SERVICE_ROLE)? {
        connection.batch_execute(&format!("CREATE ROLE {SERVICE_ROLE} LOGIN")).map_err(failed)?;
    }
    if !is_there(&mut connection, "SELECT 1 FROM pg_database WHERE datname = $1", database)? {
        connection.batch_execute(&format!("CREATE DATABASE {database}")).map_err(failed)?;
    }
    let prepared = Prepared { owner: server.owner_url(database), service: server.url(SERVICE_ROLE, database) };
    migrate(&prepared.owner)?;
    // Every time, because an earlier start may have been killed before this.
    match grant_service_role(&prepared.owner, SERVICE_ROLE) {
        // A newer program has granted what it needs, which is at least as much.
        Ok(()) | Err(SchemaError::Newer(_)) => Ok(prepared),
        Err(error) => Err(error),
    }
}
