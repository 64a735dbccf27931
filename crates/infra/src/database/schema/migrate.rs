//! Brings the schema up to date.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel_migrations::MigrationHarness;

use crate::database::cluster::spread::spread_later;
use crate::database::connecting::lock_wait::{LockPatience, Undone, with_lock_patience};
use crate::database::connecting::url::DatabaseUrl;
use crate::database::schema::migrations::{MIGRATIONS, connect_alone, missing};
use crate::database::schema::schema_error::{SchemaError, failed};

/// Time for which a migration waits for a table that others use: less than a request waits for the database, with
/// pauses for all that had to wait behind it. About a minute in all, which is longer than any ordinary transaction.
const TABLE: LockPatience = LockPatience { limit: Duration::from_secs(2), tries: 12, pause: Duration::from_secs(3) };

/// Applies the migrations that are missing, as the owner, and returns their names.
pub fn migrate(url: &DatabaseUrl) -> Result<Vec<String>, SchemaError> {
    let mut connection = connect_alone(url)?;
    let missing = missing(&mut connection).map_err(failed)?;
    if !missing.is_empty() {
        apply_all(url, &mut connection)?;
    }
    spread_later(&mut connection).map_err(failed)?;
    Ok(missing)
}

/// Whatever was applied before a try fails stays applied.
fn apply_all(url: &DatabaseUrl, connection: &mut PgConnection) -> Result<(), SchemaError> {
    let applied = with_lock_patience(url, connection, TABLE, |connection| {
        connection.run_pending_migrations(MIGRATIONS).map(drop)
    });
    applied.map_err(|undone| match undone {
        Undone::Locked(holders) => SchemaError::Locked(holders),
        Undone::Failed(error) if connection.batch_execute("SELECT 1").is_err() => SchemaError::Interrupted(error),
        Undone::Failed(error) => SchemaError::Failed(error),
    })
}
