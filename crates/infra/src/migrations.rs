//! The schema: applied by the owner, checked by the service, granted to the service's role as far as it needs and no
//! further. The service can put patients in; nothing lets it read their details.

use diesel::connection::SimpleConnection;
use diesel::migration::{MigrationName, MigrationSource};
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use intake_domain::Environment;

use crate::database_url::DatabaseUrl;
use crate::diesel_errors::discreet;
use crate::schema::environment_stamp;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations");

/// Held while migrating, so that services starting together migrate one after the other. Any number no one else uses.
const MIGRATION_LOCK: i64 = 0x696E_7461_6B65;

/// What the service's role may do, and all of it.
const GRANTS: &str = "
    GRANT SELECT, INSERT ON environment_stamp TO {role};
    GRANT SELECT, INSERT ON organisations TO {role};
    GRANT SELECT, INSERT, UPDATE (revoked_at, revoked_by, expires_at) ON api_keys TO {role};
    GRANT SELECT, INSERT, UPDATE, DELETE ON members, sessions, familiar_networks TO {role};
    GRANT SELECT, INSERT, DELETE ON recovery_codes, waiting_sign_ins TO {role};
    GRANT SELECT, INSERT, UPDATE (accepted_by), DELETE ON invitations TO {role};
    GRANT SELECT, INSERT ON audit_entries TO {role};
    GRANT SELECT, INSERT, UPDATE ON key_uses TO {role};
    GRANT SELECT, INSERT, UPDATE, DELETE ON key_answers TO {role};
    GRANT INSERT ON patients TO {role};
    GRANT SELECT (organisation_id, id, idempotency_key, request_digest, created_at, updated_at) ON patients TO {role};
    GRANT SELECT ON __diesel_schema_migrations TO {role};
";

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

/// Whether the role exists, and is fit to serve: neither the owner nor a superuser, whom no grant would bind.
pub fn assert_service_role(url: &DatabaseUrl, role: &str) -> Result<(), SchemaError> {
    let mut connection = connect(url)?;
    let known = "SELECT rolsuper OR rolname = current_user AS is_powerful FROM pg_roles WHERE rolname = $1";
    let known: Option<Power> =
        diesel::sql_query(known).bind::<Text, _>(role).get_result(&mut connection).optional().map_err(failed)?;
    match known {
        None => Err(SchemaError::NoSuchRole(role.to_owned())),
        Some(Power { is_powerful: true }) => Err(SchemaError::PowerfulRole(role.to_owned())),
        Some(_) => Ok(()),
    }
}

#[derive(QueryableByName)]
struct Power {
    #[diesel(sql_type = Bool)]
    is_powerful: bool,
}

/// Lets the role do what the service needs, and takes everything else from it.
pub fn grant_service_role(url: &DatabaseUrl, role: &str) -> Result<(), SchemaError> {
    assert_service_role(url, role)?;
    let quoted = format!("\"{}\"", role.replace('"', "\"\""));
    let grants = GRANTS.replace("{role}", &quoted);
    let everything =
        format!("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {quoted}; GRANT USAGE ON SCHEMA public TO {quoted};");
    connect(url)?.transaction(|connection| connection.batch_execute(&(everything + &grants))).map_err(failed)
}

/// Whether the schema is as new as the program.
pub fn assert_migrated(url: &DatabaseUrl) -> Result<(), SchemaError> {
    let mut connection = connect(url)?;
    // Asking Diesel would have it create its table where there is none, which the service's role may not.
    let is_known = diesel::sql_query("SELECT 1 WHERE to_regclass('__diesel_schema_migrations') IS NOT NULL");
    if is_known.execute(&mut connection).map_err(failed)? == 0 {
        return Err(SchemaError::Unmigrated);
    }
    let applied: Vec<Applied> =
        diesel::sql_query("SELECT version FROM __diesel_schema_migrations").load(&mut connection).map_err(failed)?;
    let needed = MigrationSource::<Pg>::migrations(&MIGRATIONS).map_err(SchemaError::Failed)?;
    let is_applied = |name: &dyn MigrationName| applied.iter().any(|one| one.version == name.version().to_string());
    if needed.iter().all(|migration| is_applied(migration.name())) { Ok(()) } else { Err(SchemaError::Unmigrated) }
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
