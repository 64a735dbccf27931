//! The stamp in a database that says which environment it belongs to.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::Environment;

use crate::database::connecting::lock_wait::{LockPatience, with_lock_patience};
use crate::database::connecting::url::DatabaseUrl;
use crate::database::schema::schema_error::{CheckConnection, SchemaError, connect, failed};
use crate::diesel_errors::is_unique_violation;
use crate::schema::environment_stamp;

/// Refuses a database that belongs to the other environment. One without a stamp, or without tables, is accepted.
pub fn assert_environment(over: &mut CheckConnection, environment: Environment) -> Result<(), SchemaError> {
    expect(environment, find(&mut over.0).map_err(failed)?)
}

/// The same for a command of the owner, which others may keep waiting.
pub fn assert_environment_as_owner(owner: &DatabaseUrl, environment: Environment) -> Result<(), SchemaError> {
    expect(environment, with_lock_patience(owner, &mut connect(owner)?, LockPatience::OF_A_COMMAND, find)?)
}

fn find(connection: &mut PgConnection) -> QueryResult<Option<String>> {
    let has_stamp = diesel::sql_query("SELECT 1 WHERE to_regclass('environment_stamp') IS NOT NULL");
    if has_stamp.execute(connection)? == 0 { Ok(None) } else { stamp(connection) }
}

fn expect(environment: Environment, stamped: Option<String>) -> Result<(), SchemaError> {
    match stamped {
        Some(stamped) if stamped != environment.as_str() => {
            Err(SchemaError::OtherEnvironment { stamped, asked: environment })
        }
        _ => Ok(()),
    }
}

/// Stamps the database with this environment unless it has a stamp. Refuses one of the other environment.
pub fn stamp_environment(over: &mut CheckConnection, environment: Environment) -> Result<(), SchemaError> {
    let CheckConnection(connection) = &mut *over;
    if stamp(connection).map_err(failed)?.is_none() {
        // Without ON CONFLICT, for which Citus asks for a right to change the table.
        let stamped = diesel::insert_into(environment_stamp::table)
            .values(environment_stamp::environment.eq(environment.as_str()))
            .execute(connection);
        match stamped {
            // Another service was faster.
            Err(error) if is_unique_violation(&error) => {}
            stamped => drop(stamped.map_err(failed)?),
        }
    }
    assert_environment(over, environment)
}

/// The environment that a migrated database was stamped with.
pub(crate) fn stamp(connection: &mut PgConnection) -> QueryResult<Option<String>> {
    environment_stamp::table.select(environment_stamp::environment).first(connection).optional()
}
