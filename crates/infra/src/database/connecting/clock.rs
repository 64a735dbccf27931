//! Reports the database's time whenever a connection is made or readiness is checked: what the database decides by
//! time it decides by its own clock, and the clock of the service should agree.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::Timestamptz;
use time::OffsetDateTime;

/// An answer that took longer says too little about the time.
const ANSWER_MAX: Duration = Duration::from_millis(500);

static LISTENER: OnceLock<fn(OffsetDateTime)> = OnceLock::new();

/// Calls this with the database's time from now on. Only the first listener counts.
pub fn listen(listener: fn(OffsetDateTime)) {
    let _ = LISTENER.set(listener);
}

/// Reads the database's time.
pub(crate) fn look(connection: &mut PgConnection) -> QueryResult<()> {
    let Some(listener) = LISTENER.get() else { return Ok(()) };
    let asked = Instant::now();
    let now = read(connection)?;
    let took = asked.elapsed();
    if took <= ANSWER_MAX {
        listener(now + took / 2);
    }
    Ok(())
}

/// The database's time at this moment.
pub(crate) fn read(connection: &mut PgConnection) -> QueryResult<OffsetDateTime> {
    #[derive(QueryableByName)]
    struct Clock {
        #[diesel(sql_type = Timestamptz)]
        now: OffsetDateTime,
    }

    let read = diesel::sql_query("SELECT clock_timestamp() AS now").get_result::<Clock>(connection)?;
    Ok(read.now)
}
