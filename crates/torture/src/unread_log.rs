//! Nobody reads the logs of the services for a while. All requests must be served as before.

use std::time::Duration;

use crate::audit::Findings;
use crate::postgres_server::PostgresServer;
use crate::run::{Refusals, Run};
use crate::test_bed::TestBed;

/// A line for each request, so that a log that is not read is full after a moment.
const EVERY_REQUEST: (&str, &str) = ("INTAKE_LOG", "warn,intake=info,intake::requests=info");
/// Time for which nobody reads, in milliseconds.
const UNREAD: (u64, u64) = (1_500, 4_000);

impl Run<'_> {
    /// Leaves the logs unread, over and over.
    pub(crate) fn leave_logs_unread(&self, server: &PostgresServer, times: u64) -> anyhow::Result<(u64, Findings)> {
        let bed = TestBed::open(server, &self.plan("unread_logs", &[EVERY_REQUEST]))?;
        self.run_fault_in(&bed, Refusals::Wrong, |fault| {
            for _ in 0..times {
                fault.rest();
                let time = fault.random.milliseconds(UNREAD.0, UNREAD.1);
                fault.bed.leave_logs_unread(time);
            }
            fault.found.away = Some(fault.traffic.pulse.longest());
            let longest = Duration::from_secs(1) * fault.slowness;
            if fault.traffic.pulse.longest() > longest {
                fault.found.is_wrong(format!("a service answered nothing for more than {longest:?}"));
            }
            Ok(times)
        })
    }
}
