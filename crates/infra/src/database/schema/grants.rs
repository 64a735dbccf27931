//! The privileges of the service's role, each listed once: granted when the owner migrates, checked when the service
//! starts. The service can insert patients and cannot read their details.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::result::Error;
use diesel::sql_types::{Bool, Nullable, Text};

use crate::database::cluster::spread::has_citus;
use crate::database::connecting::url::DatabaseUrl;
use crate::database::schema::migrations::{assert_not_newer, connect_alone};
use crate::database::schema::schema_error::{CheckConnection, SchemaError, connect, failed};

/// The columns of a patient that the service's role may read: those that safe retry needs, none of which describes a
/// person.
pub(crate) const READABLE: &str = "organisation_id, id, idempotency_key, request_digest, created_at, updated_at";

/// The columns of an audit entry that the service writes; the database adds the time and the number.
pub(crate) const RECORDABLE: &str = "organisation_id, id, action, actor, actor_id, actor_email, operator, reason, subject, address, \
     key_id, key_hint, replaced_key_id, key_expires_at, idempotency_digest";

/// Privileges, the columns they are limited to (all if empty), and the tables.
const GRANTS: [(&str, &str, &[&str]); 17] = [
    ("SELECT, INSERT", "", &["environment_stamp", "organisations", "api_keys"]),
    ("UPDATE", "second_factor_required, name, suspended_at, closed_at, key_days_max", &["organisations"]),
    (
        "UPDATE",
        "revoked_at, revoked_by, name, note, expiry_announced_at, suspended_at, paused_at, paused_by, \
         allowed_networks",
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

/// Functions that the service calls on each new connection: in which cluster it is; how it ends keys that were
/// replaced; on Citus, which number a patient gets; and what a follower of the audit log sees.
const CALLED: [&str; 4] =
    ["origin_now()", "end_replaced_keys(uuid[], uuid[], double precision[])", "feed_number(uuid)", "audit_now(uuid)"];

/// Finds a row if the role, whose name is the first value, can read more of a patient than the columns of the second.
const CAN_READ: &str = "SELECT 1 FROM pg_attribute
    WHERE attrelid = 'patients'::regclass AND attnum > 0 AND NOT attisdropped
        AND attname <> ALL (string_to_array($2, ', ')) AND has_column_privilege($1, attrelid, attnum, 'SELECT')";

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

/// Refuses a role that does not exist, and one that no grant could limit: the owner or a superuser.
pub fn assert_service_role(url: &DatabaseUrl, role: &str) -> Result<(), SchemaError> {
    let mut connection = connect(url)?;
    let query = "SELECT rolsuper, rolname = current_user AS is_own FROM pg_roles WHERE rolname = $1";
    let found: Option<Role> =
        diesel::sql_query(query).bind::<Text, _>(role).get_result(&mut connection).optional().map_err(failed)?;
    match found {
        None => Err(SchemaError::NoSuchRole(role.to_owned())),
        Some(Role { rolsuper: true, .. }) => Err(SchemaError::PrivilegedRole(role.to_owned())),
        Some(Role { is_own: true, .. }) => Err(SchemaError::OwnRole(role.to_owned())),
        Some(_) => Ok(()),
    }
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
    let reader = "SELECT 1 FROM readers WHERE role = $1";
    if diesel::sql_query(reader).bind::<Text, _>(role).execute(&mut connection).map_err(failed)? > 0 {
        return Err(SchemaError::MoreThanService { role: role.to_owned(), by: "it is a reader" });
    }
    let quoted = format!("\"{}\"", role.replace('"', "\"\""));
    let mut statements =
        format!("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {quoted}; GRANT USAGE ON SCHEMA public TO {quoted};");
    for Privilege { name, table, column } in privileges(&mut connection).map_err(failed)? {
        let columns = column.map(|column| format!(" ({column})")).unwrap_or_default();
        statements += &format!("GRANT {name}{columns} ON {table} TO {quoted};");
    }
    for function in CALLED {
        statements += &format!("GRANT EXECUTE ON FUNCTION {function} TO {quoted};");
    }
    let granted = connection.transaction(|connection| {
        connection.batch_execute(&statements)?;
        let can_read = diesel::sql_query(CAN_READ).bind::<Text, _>(role).bind::<Text, _>(READABLE);
        if can_read.execute(connection)? == 0 { Ok(()) } else { Err(Error::RollbackTransaction) }
    });
    granted.map_err(|error| match error {
        Error::RollbackTransaction => SchemaError::MoreThanService {
            role: role.to_owned(),
            by: "a role that it is a member of, or a grant to everybody",
        },
        error => failed(error),
    })
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
    #[derive(QueryableByName)]
    struct Missing {
        #[diesel(sql_type = Text)]
        what: String,
    }
    let checks = privileges(connection)?.map(|Privilege { name, table, column }| match column {
        None => {
            format!("SELECT '{name} on {table}' AS what FROM service WHERE NOT has_table_privilege(role, '{table}', '{name}')")
        }
        Some(column) => format!(
            "SELECT '{name} ({column}) on {table}' AS what
             FROM service WHERE NOT has_column_privilege(role, '{table}', '{column}', '{name}')"
        ),
    });
    let called = CALLED.map(|function| {
        format!(
            "SELECT 'EXECUTE on {function}' AS what
             FROM service WHERE NOT has_function_privilege(role, '{function}', 'EXECUTE')"
        )
    });
    let checks = checks.chain(called).collect::<Vec<_>>().join(" UNION ALL ");
    let query = format!("WITH service AS (SELECT coalesce($1::name, current_user) AS role) {checks}");
    let missing: Vec<Missing> = diesel::sql_query(query).bind::<Nullable<Text>, _>(role).load(connection)?;
    Ok(missing.into_iter().map(|missing| missing.what).collect())
}
