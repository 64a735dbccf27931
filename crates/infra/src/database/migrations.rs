//! The schema: applied by the owner, checked by the service.

use diesel::connection::SimpleConnection;
use diesel::migration::MigrationSource;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::sql_types::Text;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

use crate::database::schema_error::{SchemaError, connect, failed};
use crate::database::url::DatabaseUrl;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations");

/// Held while migrating, so that services starting together migrate one after the other. Any number no one else uses.
const MIGRATION_LOCK: i64 = 0x696E_7461_6B65;

/// Applies what is missing, as the owner; gives the names of what was applied.
pub fn migrate(url: &DatabaseUrl) -> Result<Vec<String>, SchemaError> {
    let mut connection = connect(url)?;
    connection.batch_execute(&format!("SELECT pg_advisory_lock({MIGRATION_LOCK})")).map_err(failed)?;
    let applied = connection.run_pending_migrations(MIGRATIONS).map_err(SchemaError::Failed)?;
    // The lock ends with the connection.
    Ok(applied.iter().map(ToString::to_string).collect())
}

/// Whether the schema is as new as the program.
pub fn assert_migrated(url: &DatabaseUrl) -> Result<(), SchemaError> {
    let mut connection = connect(url)?;
    // Asking Diesel would have it create its table where there is none, which the service's role may not.
    let is_known = diesel::sql_query("SELECT 1 WHERE to_regclass('__diesel_schema_migrations') IS NOT NULL");
    if is_known.execute(&mut connection).map_err(failed)? == 0 {
        return Err(SchemaError::Unmigrated);
    }
    let applied = applied(&mut connection)?;
    if known()?.iter().all(|version| applied.contains(version)) { Ok(()) } else { Err(SchemaError::Unmigrated) }
}

/// Refuses a schema that a newer program has made: what it needs is not known here.
pub fn assert_not_newer(url: &DatabaseUrl) -> Result<(), SchemaError> {
    let mut connection = connect(url)?;
    let is_known = diesel::sql_query("SELECT 1 WHERE to_regclass('__diesel_schema_migrations') IS NOT NULL");
    if is_known.execute(&mut connection).map_err(failed)? == 0 {
        return Ok(());
    }
    let known = known()?;
    match applied(&mut connection)?.into_iter().filter(|version| !known.contains(version)).max() {
        Some(newest) => Err(SchemaError::Newer(newest)),
        None => Ok(()),
    }
}

/// The versions that this program brings along.
fn known() -> Result<Vec<String>, SchemaError> {
    let known = MigrationSource::<Pg>::migrations(&MIGRATIONS).map_err(SchemaError::Failed)?;
    Ok(known.iter().map(|migration| migration.name().version().to_string()).collect())
}

/// The versions that the database has.
fn applied(connection: &mut PgConnection) -> Result<Vec<String>, SchemaError> {
    let applied = diesel::sql_query("SELECT version FROM __diesel_schema_migrations").load::<Applied>(connection);
    Ok(applied.map_err(failed)?.into_iter().map(|applied| applied.version).collect())
}

#[derive(QueryableByName)]
struct Applied {
    #[diesel(sql_type = Text)]
    version: String,
}
