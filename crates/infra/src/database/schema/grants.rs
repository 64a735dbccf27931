//! The privileges of the service's role, each listed once: granted when the owner migrates, checked when the service
//! starts. The service can insert patients and cannot read their details.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::result::Error;
use diesel::sql_types::{Bool, Nullable, Text};

use crate::database::cluster::extension::has_citus;
use crate::database::connecting::url::DatabaseUrl;
use crate::database::rows::Named;
use crate::database::schema::means_to_read::{MeansToRead, READABLE, means};
use crate::database::schema::migrations::{assert_not_newer, connect_alone};
use crate::database::schema::schema_error::{CheckConnection, SchemaError, connect, failed};

/// The columns of an audit entry that the service writes; the database adds the time and the number.
pub(crate) const RECORDABLE: &str = "organisation_id, id, action, actor, actor_id, actor_email, operator, reason, subject, address, \
     key_id, key_hint, replaced_key_id, key_expires_at, idempotency_digest, role";

/// Privileges, the columns they are limited to (all if empty), and the tables.
const GRANTS: [(&str, &str, &[&str]); 17] = [
    ("SELECT, INSERT", "", &["environment_stamp", "organisations", "api_keys"]),
    ("UPDATE", "second_factor_required, name, suspended_at, closed_at, key_days_max, time_zone", &["organisations"]),
    (
        "UPDATE",
        "revoked_at, revoked_by, name, note, contact, expiry_announced_at, suspended_at, paused_at, \
         paused_by, allowed_networks, stopped_in",
        &["api_keys"],
    ),
    (
        "SELECT, INSERT, UPDATE, DELETE",
        "",
        &[
            "members",
            "memberships",
            "sessions",
            "passkeys",
            "password_resets",
            "familiar_networks",
            "known_browsers",
            "email_changes",
            "key_answers",
        ],
    ),
    (
        "SELECT, INSERT, DELETE",
        "",
        &["recovery_codes", "waiting_sign_ins", "passkey_challenges", "invitations", "key_refusals"],
    ),
    ("UPDATE", "accepted_by", &["invitations"]),
    ("SELECT", "", &["audit_entries", "key_homes", "organisation_states"]),
    // Making a key locks the row.
    ("UPDATE", "suspended_at, closed_at, key_days_max", &["organisation_states"]),
    ("INSERT", RECORDABLE, &["audit_entries"]),
    ("SELECT, INSERT, UPDATE", "", &["key_uses", "key_watches"]),
    ("INSERT", "", &["patients"]),
    ("SELECT", READABLE, &["patients"]),
    ("SELECT", "organisation_id, patient_id, idempotency_digest", &["erasures"]),
    ("SELECT, DELETE", "", &["feed_marks"]),
    ("SELECT", "", &["origin"]),
    ("UPDATE", "timeline", &["origin"]),
    ("SELECT", "", &["__diesel_schema_migrations"]),
];

/// Further needs of Citus: it fills in the time itself and sends it to the node that holds the row, whose number an
/// audit entry gets by its insert, and two views are tables.
const GRANTS_ON_CITUS: [(&str, &str, &[&str]); 2] =
    [("INSERT", "at, recorded_in", &["audit_entries"]), ("INSERT", "", &["key_homes", "organisation_states"])];

/// Functions that the service calls: in which cluster it is; how it ends keys that were replaced; on Citus, which
/// number a patient gets; what a follower of the audit log sees; and what a key created.
const CALLED: [&str; 6] = [
    "origin_now()",
    "end_replaced_keys(uuid[], uuid[], double precision[])",
    "end_replaced_key_by(uuid, uuid, timestamptz)",
    "feed_number(uuid)",
    "audit_now(uuid)",
    "created_by_key(uuid, uuid, uuid, uuid)",
];

/// One privilege on one table, or on one of its columns.
struct Privilege {
    name: &'static str,
    table: &'static str,
    column: Option<&'static str>,
}

fn privileges(connection: &mut PgConnection) -> QueryResult<impl Iterator<Item = Privilege>> {
    let on_citus = if has_citus(connection)? { &GRANTS_ON_CITUS[..] } else { &[] };
    let privileges = GRANTS.iter().chain(on_citus).flat_map(|(names, columns, tables)| {
        tables.iter().flat_map(move |table| {
            names.split(", ").flat_map(move |name| {
                let all = columns.is_empty().then_some(Privilege { name, table, column: None });
                let named = columns.split(", ").filter(|column| !column.is_empty());
                all.into_iter().chain(named.map(move |column| Privilege { name, table, column: Some(column) }))
            })
        })
    });
    Ok(privileges)
}

/// Refuses a role that does not exist or cannot be the service's: one that no grant could limit, a reader, or one that
/// can read patients without a grant to it. The database may not be migrated yet.
pub fn assert_service_role(url: &DatabaseUrl, role: &str) -> Result<(), SchemaError> {
    let mut connection = connect(url)?;
    assert_can_be_limited(&mut connection, role)?;
    if is_reader(&mut connection, role).map_err(failed)? {
        return Err(SchemaError::MoreThanService { role: role.to_owned(), by: "is a reader".to_owned() });
    }
    match means(&mut connection, Some(role)).map_err(failed)? {
        Some(means) if !means.ends_with_grants() => Err(more_than_service(role, &means)),
        _ => Ok(()),
    }
}

/// Refuses a role that does not exist, and one that no grant could limit: the owner or a superuser.
pub(crate) fn assert_can_be_limited(connection: &mut PgConnection, role: &str) -> Result<(), SchemaError> {
    let query = "SELECT rolsuper, rolname = current_user AS is_own FROM pg_roles WHERE rolname = $1";
    let found: Option<Role> =
        diesel::sql_query(query).bind::<Text, _>(role).get_result(connection).optional().map_err(failed)?;
    match found {
        None => Err(SchemaError::NoSuchRole(role.to_owned())),
        Some(Role { rolsuper: true, .. }) => Err(SchemaError::PrivilegedRole(role.to_owned())),
        Some(Role { is_own: true, .. }) => Err(SchemaError::OwnRole(role.to_owned())),
        Some(_) => Ok(()),
    }
}

fn is_reader(connection: &mut PgConnection, role: &str) -> QueryResult<bool> {
    let has_readers = diesel::sql_query("SELECT 1 WHERE to_regclass('readers') IS NOT NULL");
    if has_readers.execute(connection)? == 0 {
        return Ok(false);
    }
    let reader = diesel::sql_query("SELECT 1 FROM readers WHERE role = $1").bind::<Text, _>(role);
    Ok(reader.execute(connection)? > 0)
}

fn more_than_service(role: &str, means: &MeansToRead) -> SchemaError {
    SchemaError::MoreThanService { role: role.to_owned(), by: means.to_string() }
}

#[derive(QueryableByName)]
struct Role {
    #[diesel(sql_type = Bool)]
    rolsuper: bool,
    #[diesel(sql_type = Bool)]
    is_own: bool,
}

/// Grants the role what the service needs, and revokes everything else. Refuses a schema that is newer than the
/// program, which would not know what a newer service needs.
pub fn grant_service_role(url: &DatabaseUrl, role: &str) -> Result<(), SchemaError> {
    assert_service_role(url, role)?;
    assert_not_newer(url)?;
    let mut connection = connect_alone(url)?;
    let quoted = format!("\"{}\"", role.replace('"', "\"\""));
    let mut statements = may_connect(&quoted);
    statements +=
        &format!("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {quoted}; GRANT USAGE ON SCHEMA public TO {quoted};");
    for Privilege { name, table, column } in privileges(&mut connection).map_err(failed)? {
        let columns = column.map(|column| format!(" ({column})")).unwrap_or_default();
        statements += &format!("GRANT {name}{columns} ON {table} TO {quoted};");
    }
    for function in CALLED {
        statements += &format!("GRANT EXECUTE ON FUNCTION {function} TO {quoted};");
    }
    let mut found = None;
    let granted = connection.transaction(|connection| {
        connection.batch_execute(&statements)?;
        found = means(connection, Some(role))?;
        if found.is_none() { Ok(()) } else { Err(Error::RollbackTransaction) }
    });
    granted.map_err(|error| found.map_or_else(|| failed(error), |means| more_than_service(role, &means)))
}

/// Lets the role connect where PUBLIC may not. Only the database's owner can, so the check of what is missing tells
/// what was refused.
fn may_connect(quoted: &str) -> String {
    let role = quoted.replace('\'', "''");
    format!(
        "DO $$ BEGIN EXECUTE format('GRANT CONNECT ON DATABASE %I TO %s', current_database(), '{role}');
        EXCEPTION WHEN insufficient_privilege THEN NULL; END $$;"
    )
}

/// Refuses a role that lacks a privilege which the service needs.
pub fn assert_granted(over: &mut CheckConnection) -> Result<(), SchemaError> {
    let missing = missing(&mut over.0, None).map_err(failed)?;
    if missing.is_empty() { Ok(()) } else { Err(SchemaError::MissingGrants(missing.join(", "))) }
}

/// The privileges that the role lacks, if any: asked when a statement fails over a connection that works.
pub(crate) fn missing_grants(connection: &mut PgConnection) -> Option<SchemaError> {
    let missing = missing(connection, None).ok()?;
    (!missing.is_empty()).then(|| SchemaError::MissingGrants(missing.join(", ")))
}

/// The privileges that the service needs and this role does not have, asked as the owner.
pub fn missing_for(url: &DatabaseUrl, role: &str) -> Result<Vec<String>, SchemaError> {
    missing(&mut connect(url)?, Some(role)).map_err(failed)
}

/// The privileges that the service needs and a role does not have: without a name, the role that connects.
pub(crate) fn missing(connection: &mut PgConnection, role: Option<&str>) -> QueryResult<Vec<String>> {
    let checks = privileges(connection)?.map(|Privilege { name, table, column }| match column {
        None => {
            format!("SELECT '{name} on {table}' AS name FROM service WHERE NOT has_table_privilege(role, '{table}', '{name}')")
        }
        Some(column) => format!(
            "SELECT '{name} ({column}) on {table}' AS name
             FROM service WHERE NOT has_column_privilege(role, '{table}', '{column}', '{name}')"
        ),
    });
    let called = CALLED.map(|function| {
        format!(
            "SELECT 'EXECUTE on {function}' AS name
             FROM service WHERE NOT has_function_privilege(role, '{function}', 'EXECUTE')"
        )
    });
    let connect = "SELECT 'CONNECT on the database' AS name
         FROM service WHERE NOT has_database_privilege(role, current_database(), 'CONNECT')";
    let checks = checks.chain(called).chain([connect.to_owned()]).collect::<Vec<_>>().join(" UNION ALL ");
    let query = format!("WITH service AS (SELECT coalesce($1::name, current_user) AS role) {checks}");
    let missing: Vec<Named> = diesel::sql_query(query).bind::<Nullable<Text>, _>(role).load(connection)?;
    Ok(missing.into_iter().map(|missing| missing.name).collect())
}
