//! What production requires of its database: that it keeps what it has committed, and that the service's role has no
//! privilege that it does not need.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};
use time::OffsetDateTime;

use crate::database::cluster::nodes;
use crate::database::connecting::clock;
use crate::database::connecting::connect::connect as connect_durably;
use crate::database::connecting::durability::Durability;
use crate::database::connecting::url::DatabaseUrl;
use crate::database::schema::grants::READABLE;
use crate::database::schema::schema_error::{CheckConnection, SchemaError, failed};

/// Privileges that would let the role read patients: being a superuser, owning the table, or a grant.
const PRIVILEGES: &str = "SELECT
    (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS is_superuser,
    pg_has_role(relowner, 'MEMBER') AS is_owner,
    EXISTS (SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
        AND attname <> ALL (string_to_array($1, ', '))
        AND has_column_privilege(attrelid, attnum, 'SELECT')) AS can_read
    FROM pg_class WHERE oid = 'patients'::regclass";

#[derive(QueryableByName)]
struct RolePrivileges {
    #[diesel(sql_type = Bool)]
    is_superuser: bool,
    #[diesel(sql_type = Bool)]
    is_owner: bool,
    #[diesel(sql_type = Bool)]
    can_read: bool,
}

/// Refuses a server that could lose commits, whatever a connection sets for itself. Every later connection checks this
/// again.
pub fn assert_durable(url: &DatabaseUrl) -> Result<(), SchemaError> {
    match connect_durably(url, "") {
        Ok(mut connection) if url.durability() == Durability::Full => assert_nodes_durable(&mut connection),
        Ok(_) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A node that is away is checked by each connection that leads to it.
fn assert_nodes_durable(connection: &mut PgConnection) -> Result<(), SchemaError> {
    let found = nodes::look(connection).map_err(failed)?;
    for node in found.unreached {
        tracing::warn!(
            node,
            "the nodes of the database do not all reach each other as the service's role: does each have the passwords (docs/scale.md)?"
        );
    }
    if found.weak.is_empty() { Ok(()) } else { Err(SchemaError::NotDurable(found.weak.join(", "))) }
}

/// The database's time at this moment.
pub fn database_time(over: &mut CheckConnection) -> Result<OffsetDateTime, SchemaError> {
    clock::read(&mut over.0).map_err(failed)
}

/// Says why the role that connects could read patients, if it could.
pub fn needless_privilege(over: &mut CheckConnection) -> Result<Option<&'static str>, SchemaError> {
    let role: RolePrivileges =
        diesel::sql_query(PRIVILEGES).bind::<Text, _>(READABLE).get_result(&mut over.0).map_err(failed)?;
    Ok(match role {
        RolePrivileges { is_superuser: true, .. } => Some("is a superuser"),
        RolePrivileges { is_owner: true, .. } => Some("owns the register"),
        RolePrivileges { can_read: true, .. } => Some("may read columns that it does not need"),
        RolePrivileges { .. } => None,
    })
}
