//! Detects a pooler between the service and PostgreSQL that shares connections between transactions: such a pooler
//! would give the service's settings to other clients, and lose its prepared statements.

use std::sync::Arc;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::Integer;

use crate::abandoned::{Abandoned, CallError};
use crate::database::connecting::url::DatabaseUrl;
use crate::database::schema::schema_error::{CheckConnection, SchemaError, connect, failed};

/// A pooler whose connections are all in use makes its clients wait.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// Other clients may hide the sharing in one round, but hardly in all of them.
const ROUNDS: usize = 3;

/// Refuses a pooler that shares connections between transactions. Returns one of the connections that have shown it.
pub fn assert_own_sessions(url: &DatabaseUrl) -> Result<CheckConnection, SchemaError> {
    let url = url.clone();
    match Arc::<Abandoned>::default().call("pooler-probe", PROBE_TIMEOUT, move || own_session(&url)) {
        Ok(Ok(Some(own))) => Ok(CheckConnection(own)),
        Ok(Ok(None)) => Err(SchemaError::SharedSessions),
        Ok(Err(error)) => Err(error),
        Err(CallError::Hangs) => Err(SchemaError::NoSecondConnection),
        Err(CallError::Failed(error)) => Err(SchemaError::Failed(error.into())),
    }
}

/// A connection, if each keeps a backend of its own.
fn own_session(url: &DatabaseUrl) -> Result<Option<PgConnection>, SchemaError> {
    let (mut one, mut other) = (connect(url)?, connect(url)?);
    for _ in 0..ROUNDS {
        let first = backend(&mut one)?;
        // A pooler that shares connections between statements does not support transactions.
        if other.batch_execute("BEGIN").is_err() {
            return Ok(None);
        }
        if backend(&mut other)? == first || backend(&mut one)? != first {
            return Ok(None);
        }
        other.batch_execute("ROLLBACK").map_err(failed)?;
    }
    Ok(Some(one))
}

fn backend(connection: &mut PgConnection) -> Result<i32, SchemaError> {
    #[derive(QueryableByName)]
    struct Backend {
        #[diesel(sql_type = Integer)]
        id: i32,
    }
    // One query message, because a pooler that shares sessions may not support prepared statements.
    let asked = diesel::sql_query("SELECT pg_backend_pid() AS id");
    asked.get_result::<Backend>(connection).map(|backend| backend.id).map_err(failed)
}
