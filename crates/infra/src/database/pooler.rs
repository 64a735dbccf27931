//! Detects a pooler between the service and PostgreSQL that shares connections between transactions: such a pooler would
//! give the service's settings to other clients, and lose its prepared statements.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::Integer;

use crate::database::schema_error::{SchemaError, connect, failed};
use crate::database::url::DatabaseUrl;

/// A pooler whose connections are all in use makes its clients wait.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// Other clients may hide the sharing in one round, but hardly in all of them.
const ROUNDS: usize = 3;

/// Refuses a pooler that shares connections between transactions.
pub fn assert_own_sessions(url: &DatabaseUrl) -> Result<(), SchemaError> {
    let (answer, answered) = channel();
    let url = url.clone();
    let probing = std::thread::Builder::new().name("pooler-probe".into()).spawn(move || {
        // Nobody may be waiting any more.
        let _ = answer.send(has_own_sessions(&url));
    });
    probing.map_err(|error| SchemaError::Failed(error.into()))?;
    match answered.recv_timeout(PROBE_TIMEOUT) {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err(SchemaError::SharedSessions),
        Ok(Err(error)) => Err(error),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Err(SchemaError::NoSecondConnection),
    }
}

/// Whether each connection keeps a backend of its own.
fn has_own_sessions(url: &DatabaseUrl) -> Result<bool, SchemaError> {
    let (mut one, mut other) = (connect(url)?, connect(url)?);
    for _ in 0..ROUNDS {
        let first = backend(&mut one)?;
        // A pooler that shares connections between statements does not support transactions.
        if other.batch_execute("BEGIN").is_err() {
            return Ok(false);
        }
        if backend(&mut other)? == first || backend(&mut one)? != first {
            return Ok(false);
        }
        other.batch_execute("ROLLBACK").map_err(failed)?;
    }
    Ok(true)
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
