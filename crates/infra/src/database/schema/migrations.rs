//! The versions of the schema: those that the program has, and those of a database.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::migration::MigrationSource;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::result::Error;
use diesel::sql_types::Text;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};

use crate::database::connecting::lock_wait::{LockPatience, with_lock_patience};
use crate::database::connecting::url::DatabaseUrl;
use crate::database::schema::schema_error::{CheckConnection, SchemaError, connect, failed};

pub(crate) const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations");

/// The advisory lock that is held while migrating and granting, so that programs that start together do so one after
/// the other.
const MIGRATION_LOCK: i64 = 0x696E_7461_6B65;

/// Time to wait for another program that migrates: nobody waits behind it, and it may have an index to build.
const TURN: LockPatience = LockPatience { limit: Duration::from_secs(300), tries: 1, pause: Duration::ZERO };

/// A connection over which nobody else changes the schema or its grants at the same time: PostgreSQL fails one of two
/// programs that grant at once.
pub(crate) fn connect_alone(url: &DatabaseUrl) -> Result<PgConnection, SchemaError> {
    let mut connection = connect(url)?;
    lock(url, &mut connection)?;
    Ok(connection)
}

/// Waits until nobody else changes the schema or its grants. The lock ends with the connection.
pub(crate) fn lock(url: &DatabaseUrl, connection: &mut PgConnection) -> Result<(), SchemaError> {
    let lock = format!("SELECT pg_advisory_lock({MIGRATION_LOCK})");
    Ok(with_lock_patience(url, connection, TURN, |connection| connection.batch_execute(&lock))?)
}

/// The migrations that [`migrate`](fn@crate::migrate) would apply, in their order. Changes nothing.
pub fn pending(url: &DatabaseUrl) -> Result<Vec<String>, SchemaError> {
    Ok(with_lock_patience(url, &mut connect(url)?, LockPatience::OF_A_COMMAND, missing)?)
}

pub(crate) fn missing(connection: &mut PgConnection) -> QueryResult<Vec<String>> {
    let applied = if has_versions(connection)? { applied(connection)? } else { Vec::new() };
    Ok(known()?.into_iter().filter(|version| !applied.contains(version)).collect())
}

/// Refuses a schema that is older than the program.
pub fn assert_migrated(over: &mut CheckConnection) -> Result<(), SchemaError> {
    let CheckConnection(connection) = over;
    let is_migrated = has_versions(connection).map_err(failed)? && has_all_known(connection).map_err(failed)?;
    if is_migrated { Ok(()) } else { Err(SchemaError::Unmigrated) }
}

/// Refuses a schema that is newer than the program, which does not know what it needs.
pub fn assert_not_newer(url: &DatabaseUrl) -> Result<(), SchemaError> {
    let applied = with_lock_patience(url, &mut connect(url)?, LockPatience::OF_A_COMMAND, |connection| {
        if has_versions(connection)? { applied(connection) } else { Ok(Vec::new()) }
    })?;
    let known = known().map_err(failed)?;
    match applied.into_iter().filter(|version| !known.contains(version)).max() {
        Some(newest) => Err(SchemaError::Newer(newest)),
        None => Ok(()),
    }
}

/// Returns whether any migration was ever applied. Diesel would create its table if it is missing, which the service's
/// role may not.
pub(crate) fn has_versions(connection: &mut PgConnection) -> QueryResult<bool> {
    let query = diesel::sql_query("SELECT 1 WHERE to_regclass('__diesel_schema_migrations') IS NOT NULL");
    Ok(query.execute(connection)? > 0)
}

/// Returns whether every migration that is built into the program was applied.
pub(crate) fn has_all_known(connection: &mut PgConnection) -> QueryResult<bool> {
    let applied = applied(connection)?;
    Ok(known()?.iter().all(|version| applied.contains(version)))
}

/// The versions that are built into the program, the oldest first.
fn known() -> QueryResult<Vec<String>> {
    let known = MigrationSource::<Pg>::migrations(&MIGRATIONS).map_err(Error::QueryBuilderError)?;
    let mut versions: Vec<_> = known.iter().map(|migration| migration.name().version().to_string()).collect();
    versions.sort();
    Ok(versions)
}

/// The versions that were applied to the database.
fn applied(connection: &mut PgConnection) -> QueryResult<Vec<String>> {
    let applied = diesel::sql_query("SELECT version FROM __diesel_schema_migrations").load::<Applied>(connection)?;
    Ok(applied.into_iter().map(|applied| applied.version).collect())
}

#[derive(QueryableByName)]
struct Applied {
    #[diesel(sql_type = Text)]
    version: String,
}
