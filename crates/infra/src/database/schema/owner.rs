//! What the owner's commands require: that they change the database which the service uses, and may change it. With two
//! addresses, one of them is easily left behind from another day.

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Nullable, Text};

use crate::database::connecting::url::DatabaseUrl;
use crate::database::schema::schema_error::{CheckConnection, SchemaError, failed};

/// Creator of the register, who owns it, where it does not exist yet. On Citus each node is a way in to the same
/// database.
const PLACE: &str = "SELECT current_database()::text AS name, pg_is_in_recovery() AS is_standby,
    coalesce((SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('patients')), true) AS is_owner,
    EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') AS is_one_of_many,
    CASE WHEN has_function_privilege('pg_control_system()', 'EXECUTE')
        THEN (SELECT system_identifier FROM pg_control_system()) END AS server,
    (SELECT oid::bigint FROM pg_database WHERE datname = current_database()) AS number";

#[derive(QueryableByName)]
struct Place {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Bool)]
    is_standby: bool,
    #[diesel(sql_type = Bool)]
    is_owner: bool,
    #[diesel(sql_type = Bool)]
    is_one_of_many: bool,
    /// None: providers of PostgreSQL may keep it to themselves.
    #[diesel(sql_type = Nullable<BigInt>)]
    server: Option<i64>,
    #[diesel(sql_type = BigInt)]
    number: i64,
}

/// Refuses an owner's address that leads to a standby, or to another database than the service's, and one of a role
/// that does not own the register.
pub fn assert_owner(owner: &DatabaseUrl, service: &DatabaseUrl) -> Result<(), SchemaError> {
    let own = place(&mut CheckConnection::open(owner)?)?;
    if own.is_standby {
        return Err(SchemaError::Standby);
    }
    if !own.is_owner {
        return Err(SchemaError::NotOwner);
    }
    // Whether the service can connect is not the question here.
    match CheckConnection::open(service).and_then(|mut over| place(&mut over)) {
        Ok(other) if own.is_not(&other) => Err(SchemaError::OtherDatabase { owner: own.name, service: other.name }),
        _ => Ok(()),
    }
}

impl Place {
    fn is_not(&self, other: &Self) -> bool {
        let is_other_server = self.server.zip(other.server).is_some_and(|(own, other)| own != other);
        !self.is_one_of_many && (is_other_server || self.number != other.number)
    }
}

/// Refuses a standby.
pub fn assert_primary(over: &mut CheckConnection) -> Result<(), SchemaError> {
    if place(over)?.is_standby { Err(SchemaError::Standby) } else { Ok(()) }
}

fn place(over: &mut CheckConnection) -> Result<Place, SchemaError> {
    diesel::sql_query(PLACE).get_result(&mut over.0).map_err(failed)
}
