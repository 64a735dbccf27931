//! Durability is turned off for the service's role or its database, where no server setting shows it. The services must
//! not rely on such defaults: nothing that they acknowledge may be lost when PostgreSQL is killed.

use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use intake_infra::{Durability, SERVICE_ROLE};
use intake_test_support::WithCount;

use crate::audit::Findings;
use crate::faults::CONTROL_TRIES;
use crate::postgres_server::PostgresServer;
use crate::run::Run;

/// Makes PostgreSQL write as late as possible what need not be on disk at once, so that losses are seen.
const WRITE_LATE: [&str; 2] = ["ALTER SYSTEM SET wal_writer_delay = '10s'", "SELECT pg_reload_conf()"];
/// Time for which the services work under the setting before the kill, in milliseconds.
const DRIFTED: (u64, u64) = (150, 500);
/// Time for which the control writes.
const CONTROL: Duration = Duration::from_millis(300);

/// The statements that turn durability off and on again, in turns for the role and for the database.
pub(crate) fn turn_off(database: &str, time: u64) -> (String, String) {
    let whose = if time.is_multiple_of(2) { format!("ROLE {SERVICE_ROLE}") } else { format!("DATABASE {database}") };
    (format!("ALTER {whose} SET synchronous_commit = off"), format!("ALTER {whose} RESET synchronous_commit"))
}

impl Run<'_> {
    /// Turns durability off, ends all sessions so that the setting takes effect, and kills PostgreSQL.
    pub(crate) fn drift(&self, times: u64) -> anyhow::Result<(u64, Findings)> {
        let server = PostgresServer::prepare(&self.folder.join("drift-server"), Durability::Full)?;
        self.run_fault(&server, "drift", |fault| {
            WRITE_LATE.iter().try_for_each(|sql| server.administer(sql))?;
            for time in 0..times {
                fault.rest();
                let (off, on) = turn_off("drift", time);
                server.administer(&off)?;
                server.end_sessions(SERVICE_ROLE)?;
                std::thread::sleep(fault.random.milliseconds(DRIFTED.0, DRIFTED.1));
                server.kill()?;
                server.restart()?;
                server.administer(&on)?;
                server.end_sessions(SERVICE_ROLE)?;
            }
            Ok(times)
        })
    }

    /// A session of the same role that relies on the default: some of its commits must be lost, unless PostgreSQL
    /// happens to write in the very moment before the kill.
    pub(crate) fn control_drift(&self) -> anyhow::Result<Findings> {
        let server = PostgresServer::prepare(&self.folder.join("control-drift"), Durability::Full)?;
        for time in 0..CONTROL_TRIES {
            let found = self.lose_by_drift(&server, &format!("control_drift_{time}"))?;
            if found.lost > 0 {
                return Ok(found);
            }
        }
        Ok(Findings::default())
    }

    fn lose_by_drift(&self, server: &PostgresServer, database: &str) -> anyhow::Result<Findings> {
        let urls = server.database(database)?;
        WRITE_LATE.iter().try_for_each(|sql| server.administer(sql))?;
        let mut owner = PgConnection::establish(urls.owner.expose())?;
        owner.batch_execute(&format!("CREATE TABLE rows (); GRANT INSERT ON rows TO {SERVICE_ROLE}"))?;
        server.administer(&turn_off(database, 0).0)?;
        let mut session = PgConnection::establish(urls.service.expose())?;
        let started = Instant::now();
        let mut acknowledged = 0;
        while started.elapsed() < CONTROL {
            session.batch_execute("INSERT INTO rows DEFAULT VALUES")?;
            acknowledged += 1;
        }
        server.kill()?;
        server.restart()?;
        let count = diesel::sql_query("SELECT count(*) AS count FROM rows");
        let stored = count.get_result::<WithCount>(&mut PgConnection::establish(urls.owner.expose())?)?.count;
        let lost = acknowledged - u64::try_from(stored)?;
        Ok(Findings { acknowledged, lost, ..Findings::default() })
    }
}
