//! What stands between the service and PostgreSQL, if anything does: a pooler that hands a connection to another client from
//! one transaction to the next would hand on settings and prepared statements as well, and lose ours.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::Integer;

use crate::database::schema_error::{SchemaError, connect, failed};
use crate::database::url::DatabaseUrl;

/// A pooler whose pool is used up lets its clients wait.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// Other clients of a pooler may come between; they do so in every round only where it is very busy.
const ROUNDS: usize = 3;

/// Refuses a pooler that shares connections from one transaction to the next.
pub fn assert_own_sessions(url: &DatabaseUrl) -> Result<(), SchemaError> {
    let (answer, answered) = channel();
    let url = url.clone();
    let probing = std::thread::Builder::new().name("pooler-probe".into()).spawn(move || {
        // Nobody waits any more.
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

/// A session of our own is served by one backend, which nobody else gets meanwhile.
fn has_own_sessions(url: &DatabaseUrl) -> Result<bool, SchemaError> {
    let (mut one, mut other) = (connect(url)?, connect(url)?);
    for _ in 0..ROUNDS {
        let first = backend(&mut one)?;
        // One that shares connections from one statement to the next knows no transactions.
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
    // As one message, because a pooler that shares sessions may not know statements that were prepared.
    let asked = diesel::sql_query("SELECT pg_backend_pid() AS id");
    asked.get_result::<Backend>(connection).map(|backend| backend.id).map_err(failed)
}
