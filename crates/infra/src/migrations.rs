//! The schema: applied by the owner, checked by the service.

use diesel::connection::SimpleConnection;
use diesel::migration::MigrationSource;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::sql_types::Text;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use intake_domain::Environment;

use crate::database_url::DatabaseUrl;
use crate::diesel_errors::discreet;
use crate::schema::environment_stamp;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations");

/// Held while migrating, so that services starting together migrate one after the other. Any number no one else uses.
const MIGRATION_LOCK: i64 = 0x696E_7461_6B65;

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

/// Refuses a database that belongs to the other environment. One that belongs to none yet, or is empty, will do.
pub fn assert_environment(url: &DatabaseUrl, environment: Environment) -> Result<(), SchemaError> {
    let mut connection = connect(url)?;
    let has_stamp = diesel::sql_query("SELECT 1 WHERE to_regclass('environment_stamp') IS NOT NULL");
    if has_stamp.execute(&mut connection).map_err(failed)? == 0 {
        return Ok(());
    }
    let stamp = environment_stamp::table.select(environment_stamp::environment);
    let stamped: Option<String> = stamp.first(&mut connection).optional().map_err(failed)?;
    match stamped {
        Some(stamped) if stamped != environment.as_str() => {
            Err(SchemaError::OtherEnvironment { stamped, asked: environment })
        }
        _ => Ok(()),
    }
}

/// Stamps the database with its environment, unless it has a stamp; refuses one that belongs to the other.
pub fn stamp_environment(url: &DatabaseUrl, environment: Environment) -> Result<(), SchemaError> {
    diesel::insert_into(environment_stamp::table)
        .values(environment_stamp::environment.eq(environment.as_str()))
        .on_conflict_do_nothing()
        .execute(&mut connect(url)?)
        .map_err(failed)?;
    assert_environment(url, environment)
}

pub(crate) fn connect(url: &DatabaseUrl) -> Result<PgConnection, SchemaError> {
    PgConnection::establish(url.expose()).map_err(SchemaError::Unreachable)
}

pub(crate) fn failed(error: diesel::result::Error) -> SchemaError {
    SchemaError::Failed(discreet(error))
}
