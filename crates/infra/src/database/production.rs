//! What production requires of its database: that it keeps what it has committed, and that the service's role has no
//! privilege that it does not need.

use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};
use intake_domain::Environment;

use crate::database::connect::{ConnectError, connect as connect_durably};
use crate::database::grants::READABLE;
use crate::database::schema_error::{SchemaError, connect, failed};
use crate::database::url::DatabaseUrl;

/// Every connection sets durability for itself; in production it must also be the default, so that it is on purpose.
/// `synchronous_commit` has more values than on and off, but all except off wait for this server's disk.
const DURABILITY: &str = "SELECT name FROM pg_settings
    WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off' ORDER BY name";

/// What would let the role read patients: being a superuser, owning the table, or a grant.
const PRIVILEGES: &str = "SELECT
    (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS is_superuser,
    pg_has_role(relowner, 'MEMBER') AS is_owner,
    EXISTS (SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
        AND attname <> ALL (string_to_array($1, ', '))
        AND has_column_privilege(attrelid, attnum, 'SELECT')) AS can_read
    FROM pg_class WHERE oid = 'patients'::regclass";

#[derive(QueryableByName)]
struct Setting {
    #[diesel(sql_type = Text)]
    name: String,
}

#[derive(QueryableByName)]
struct RolePrivileges {
    #[diesel(sql_type = Bool)]
    is_superuser: bool,
    #[diesel(sql_type = Bool)]
    is_owner: bool,
    #[diesel(sql_type = Bool)]
    can_read: bool,
}

/// Refuses a server that could lose commits. Every later connection checks this again.
pub fn assert_durable(url: &DatabaseUrl, environment: Environment) -> Result<(), SchemaError> {
    if environment == Environment::Production {
        let off: Vec<Setting> = diesel::sql_query(DURABILITY).load(&mut connect(url)?).map_err(failed)?;
        if !off.is_empty() {
            let names: Vec<_> = off.into_iter().map(|setting| setting.name).collect();
            return Err(SchemaError::NotDurable(names.join(", ")));
        }
    }
    match connect_durably(url, "") {
        Ok(_) => Ok(()),
        Err(ConnectError::NotDurable(names)) => Err(SchemaError::NotDurable(names)),
        Err(error) => Err(SchemaError::Failed(error.into())),
    }
}

/// Says why the role that connects could read patients, if it could.
pub fn needless_privilege(url: &DatabaseUrl) -> Result<Option<&'static str>, SchemaError> {
    let role: RolePrivileges =
        diesel::sql_query(PRIVILEGES).bind::<Text, _>(READABLE).get_result(&mut connect(url)?).map_err(failed)?;
    Ok(match role {
        RolePrivileges { is_superuser: true, .. } => Some("is a superuser"),
        RolePrivileges { is_owner: true, .. } => Some("owns the register"),
        RolePrivileges { can_read: true, .. } => Some("may read columns that it does not need"),
        RolePrivileges { .. } => None,
    })
}
