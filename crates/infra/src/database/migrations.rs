//! The schema: migrated by the owner, checked by the service.

use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use diesel::migration::MigrationSource;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::result::Error;
use diesel::sql_types::Text;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

use crate::database::schema_error::{SchemaError, connect, failed};
use crate::database::spread::spread_later;
use crate::database::url::DatabaseUrl;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations");

/// The advisory lock that is held while migrating, so that services that start together migrate one after the other.
const MIGRATION_LOCK: i64 = 0x696E_7461_6B65;

/// How long a migration waits for a table that others use. Whatever they do next with that table waits behind it, so this is
/// less than a request waits for the database.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// Between two tries: enough for all that had to wait.
const LOCK_PAUSE: Duration = Duration::from_secs(3);
/// About a minute in all: longer than any ordinary transaction.
const LOCK_TRIES: usize = 12;

/// Applies the migrations that are missing, as the owner, and returns their names.
pub fn migrate(url: &DatabaseUrl) -> Result<Vec<String>, SchemaError> {
    let mut connection = connect(url)?;
    lock(&mut connection).map_err(failed)?;
    // From here on, since whoever migrates at the same time may take longer.
    let limit = format!("SET lock_timeout = {}", LOCK_TIMEOUT.as_millis());
    connection.batch_execute(&limit).map_err(failed)?;
    let missing = missing(&mut connection).map_err(failed)?;
    run_pending(&mut connection)?;
    spread_later(&mut connection).map_err(failed)?;
    Ok(missing)
}

/// Waits until nobody else changes the schema. The lock ends with the connection.
pub(crate) fn lock(connection: &mut PgConnection) -> QueryResult<()> {
    connection.batch_execute(&format!("SELECT pg_advisory_lock({MIGRATION_LOCK})"))
}

fn run_pending(connection: &mut PgConnection) -> Result<(), SchemaError> {
    for tries_left in (0..LOCK_TRIES).rev() {
        let started = Instant::now();
        match connection.run_pending_migrations(MIGRATIONS) {
            Ok(_) => break,
            // Diesel does not distinguish a lock timeout from other errors: it shows in the time that the try took.
            Err(error) if started.elapsed() < LOCK_TIMEOUT => return Err(SchemaError::Failed(error)),
            Err(error) if tries_left == 0 => return Err(SchemaError::Locked(error)),
            // Whatever was applied before it stays applied.
            Err(_) => std::thread::sleep(LOCK_PAUSE),
        }
    }
    Ok(())
}

/// The migrations that [`migrate`] would apply, in their order. Changes nothing.
pub fn pending(url: &DatabaseUrl) -> Result<Vec<String>, SchemaError> {
    missing(&mut connect(url)?).map_err(failed)
}

fn missing(connection: &mut PgConnection) -> QueryResult<Vec<String>> {
    let applied = if has_versions(connection)? { applied(connection)? } else { Vec::new() };
    Ok(known()?.into_iter().filter(|version| !applied.contains(version)).collect())
}

/// Refuses a schema that is older than the program.
pub fn assert_migrated(url: &DatabaseUrl) -> Result<(), SchemaError> {
    let mut connection = connect(url)?;
    let is_migrated =
        has_versions(&mut connection).map_err(failed)? && has_all_known(&mut connection).map_err(failed)?;
    if is_migrated { Ok(()) } else { Err(SchemaError::Unmigrated) }
}

/// Refuses a schema that is newer than the program, which does not know what it needs.
pub fn assert_not_newer(url: &DatabaseUrl) -> Result<(), SchemaError> {
    let mut connection = connect(url)?;
    if !has_versions(&mut connection).map_err(failed)? {
        return Ok(());
    }
    let known = known().map_err(failed)?;
    match applied(&mut connection).map_err(failed)?.into_iter().filter(|version| !known.contains(version)).max() {
        Some(newest) => Err(SchemaError::Newer(newest)),
        None => Ok(()),
    }
}

/// Whether any migration was ever applied. Diesel would create its table if it is missing, which the service's role may not.
pub(crate) fn has_versions(connection: &mut PgConnection) -> QueryResult<bool> {
    let query = diesel::sql_query("SELECT 1 WHERE to_regclass('__diesel_schema_migrations') IS NOT NULL");
    Ok(query.execute(connection)? > 0)
}

/// Whether every migration that is built into the program was applied.
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
