//! What production asks of its database: that it keeps what it has committed, and that the service's role can do no more
//! than it must.

use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};
use intake_domain::Environment;

use crate::database::connect::{ConnectError, connect as connect_durably};
use crate::database::grants::READABLE;
use crate::database::schema_error::{SchemaError, connect, failed};
use crate::database::url::DatabaseUrl;

/// In production what every connection sets for itself must be meant by whoever looks after the database, too.
/// `synchronous_commit` has more values than on and off, and all others wait for this server's disk.
const DURABILITY: &str = "SELECT name FROM pg_settings
    WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off' ORDER BY name";

/// What lets a role read patients: being a superuser or the owner, or a grant.
const POWER: &str = "SELECT
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
struct Power {
    #[diesel(sql_type = Bool)]
    is_superuser: bool,
    #[diesel(sql_type = Bool)]
    is_owner: bool,
    #[diesel(sql_type = Bool)]
    can_read: bool,
}

/// Refuses a server that forgets. Each later connection is looked at, too.
pub fn assert_durable(url: &DatabaseUrl, environment: Environment) -> Result<(), SchemaError> {
    if environment == Environment::Production {
        let off: Vec<Setting> = diesel::sql_query(DURABILITY).load(&mut connect(url)?).map_err(failed)?;
        if !off.is_empty() {
            let names: Vec<_> = off.into_iter().map(|setting| setting.name).collect();
            return Err(SchemaError::Forgetful(names.join(", ")));
        }
    }
    match connect_durably(url, "") {
        Ok(_) => Ok(()),
        Err(ConnectError::NotDurable(names)) => Err(SchemaError::Forgetful(names)),
        Err(error) => Err(SchemaError::Failed(error.into())),
    }
}

/// Why this role could read patients, if it could.
pub fn excess_of_power(url: &DatabaseUrl) -> Result<Option<&'static str>, SchemaError> {
    let power: Power =
        diesel::sql_query(POWER).bind::<Text, _>(READABLE).get_result(&mut connect(url)?).map_err(failed)?;
    Ok(match power {
        Power { is_superuser: true, .. } => Some("is a superuser"),
        Power { is_owner: true, .. } => Some("owns the register"),
        Power { can_read: true, .. } => Some("is granted to read columns that it does not need"),
        Power { .. } => None,
    })
}
