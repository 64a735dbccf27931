//! What the service's role may do, each privilege once: granted when the owner migrates, asserted when the service starts.
//! The service can put patients in; nothing lets it read their details.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};

use crate::database::migrations::assert_not_newer;
use crate::database::schema_error::{SchemaError, connect, failed};
use crate::database::url::DatabaseUrl;

/// What the service's role may read of a patient: what safe retry needs, and nothing that tells of a person.
pub(crate) const READABLE: &str = "organisation_id, id, idempotency_key, request_digest, created_at, updated_at";

/// What an entry of the record is made of by the service; its moment is the database's.
const RECORDABLE: &str = "organisation_id, id, action, actor, subject, address";

/// Privileges on tables, on all their columns or on those that are named.
const GRANTS: [(&str, &str, &[&str]); 11] = [
    ("SELECT, INSERT", "", &["environment_stamp", "organisations", "api_keys"]),
    ("UPDATE", "revoked_at, revoked_by, expires_at", &["api_keys"]),
    ("SELECT, INSERT, UPDATE, DELETE", "", &["members", "sessions", "familiar_networks", "key_answers"]),
    ("SELECT, INSERT, DELETE", "", &["recovery_codes", "waiting_sign_ins", "invitations"]),
    ("UPDATE", "accepted_by", &["invitations"]),
    ("SELECT", "", &["audit_entries"]),
    ("INSERT", RECORDABLE, &["audit_entries"]),
    ("SELECT, INSERT, UPDATE", "", &["key_uses"]),
    ("INSERT", "", &["patients"]),
    ("SELECT", READABLE, &["patients"]),
    ("SELECT", "", &["__diesel_schema_migrations"]),
];

/// One privilege on one table, or on one of its columns.
struct Privilege {
    name: &'static str,
    table: &'static str,
    column: Option<&'static str>,
}

fn privileges() -> impl Iterator<Item = Privilege> {
    GRANTS.iter().flat_map(|(names, columns, tables)| {
        tables.iter().flat_map(move |table| {
            names.split(", ").flat_map(move |name| {
                let all = columns.is_empty().then_some(Privilege { name, table, column: None });
                let named = columns.split(", ").filter(|column| !column.is_empty());
                all.into_iter().chain(named.map(move |column| Privilege { name, table, column: Some(column) }))
            })
        })
    })
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

/// Lets the role do what the service needs, and takes everything else from it. A program that is older than the schema does
/// not know what the service needs.
pub fn grant_service_role(url: &DatabaseUrl, role: &str) -> Result<(), SchemaError> {
    assert_service_role(url, role)?;
    assert_not_newer(url)?;
    let role = format!("\"{}\"", role.replace('"', "\"\""));
    let mut statements =
        format!("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {role}; GRANT USAGE ON SCHEMA public TO {role};");
    for Privilege { name, table, column } in privileges() {
        let columns = column.map(|column| format!(" ({column})")).unwrap_or_default();
        statements += &format!("GRANT {name}{columns} ON {table} TO {role};");
    }
    connect(url)?.transaction(|connection| connection.batch_execute(&statements)).map_err(failed)
}

/// Whether the role that connects may do everything that the service does.
pub fn assert_granted(url: &DatabaseUrl) -> Result<(), SchemaError> {
    let missing = missing(&mut connect(url)?).map_err(failed)?;
    if missing.is_empty() { Ok(()) } else { Err(SchemaError::MissingGrants(missing.join(", "))) }
}

/// Why a statement fails over a connection that is well, if it is for want of a grant.
pub(crate) fn missing_grants(connection: &mut PgConnection) -> Option<SchemaError> {
    let missing = missing(connection).ok()?;
    (!missing.is_empty()).then(|| SchemaError::MissingGrants(missing.join(", ")))
}

/// What the role that connects may not do, and the service does.
fn missing(connection: &mut PgConnection) -> QueryResult<Vec<String>> {
    #[derive(QueryableByName)]
    struct Missing {
        #[diesel(sql_type = Text)]
        what: String,
    }
    let checks = privileges().map(|Privilege { name, table, column }| match column {
        None => format!("SELECT '{name} on {table}' AS what WHERE NOT has_table_privilege('{table}', '{name}')"),
        Some(column) => format!(
            "SELECT '{name} ({column}) on {table}' AS what
             WHERE NOT has_column_privilege('{table}', '{column}', '{name}')"
        ),
    });
    let query = checks.collect::<Vec<_>>().join(" UNION ALL ");
    let missing: Vec<Missing> = diesel::sql_query(query).load(connection)?;
    Ok(missing.into_iter().map(|missing| missing.what).collect())
}
