//! Clocks of services that are wrong, each by something else, and jump while they run.

use crate::audit::Findings;
use crate::clock::{Clock, offset};
use crate::postgres_server::PostgresServer;
use crate::run::Run;
use crate::test_bed::INSTANCES;

/// Time for which services work with the wrong clock, in milliseconds.
const WRONG: (u64, u64) = (300, 1_500);

impl Run<'_> {
    /// Starts services with wrong clocks, in turns, which jump while they run, and then with right ones.
    pub(crate) fn set_clocks_wrong(&self, server: &PostgresServer, times: u64) -> anyhow::Result<(u64, Findings)> {
        self.run_fault(server, "clocks", |fault| {
            for time in 0..times {
                fault.rest();
                let instance = usize::try_from(time)? % INSTANCES;
                let Some(clock) = Clock::in_folder(&fault.bed.folder.join(format!("clock-{instance}")))? else { break };
                clock.set(offset(&mut fault.random))?;
                fault.bed.start_with_clock(instance, &clock)?;
                std::thread::sleep(fault.random.milliseconds(WRONG.0, WRONG.1));
                clock.set(offset(&mut fault.random))?;
                std::thread::sleep(fault.random.milliseconds(WRONG.0, WRONG.1));
            }
            (0..INSTANCES).try_for_each(|instance| fault.bed.kill_service(instance))?;
            Ok(times)
        })
    }
}
