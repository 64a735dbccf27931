//! All faults at once: several threads, called workers, each with one kind of faults, strike at random for minutes and
//! do not wait for each other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use intake_infra::Durability;

use crate::audit::Findings;
use crate::disk::Disk;
use crate::floods::bound_memory;
use crate::journal::Journal;
use crate::postgres_server::PostgresServer;
use crate::random::Random;
use crate::run::{Refusals, Run};
use crate::test_bed::TestBed;
use crate::traffic::Traffic;

pub(crate) const NAME: &str = "mixed";
/// The random stream of the first worker.
const FIRST_STREAM: u64 = 9_000;
/// Between two faults of one worker, in milliseconds: most of the time some of the others are at work.
const PAUSE: (u64, u64) = (200, 2_500);
/// In a run of this length every worker must have struck.
const LONG: Duration = Duration::from_secs(60);
/// Time that PostgreSQL may take to be reachable after the last fault.
const CALM: Duration = Duration::from_secs(180);

/// The workers, each with one kind of faults.
#[derive(Clone, Copy, Debug)]
enum Worker {
    Server,
    Service,
    Network,
    Writer,
    Neighbour,
    Drift,
    Log,
}

impl Worker {
    const ALL: [Self; 7] =
        [Self::Server, Self::Service, Self::Network, Self::Writer, Self::Neighbour, Self::Drift, Self::Log];
}

/// Services and databases that the workers work on.
pub(crate) struct Mixed<'a> {
    pub(crate) server: &'a PostgresServer,
    pub(crate) disk: Option<&'a Disk>,
    pub(crate) can_drop_packets: bool,
    pub(crate) bed: &'a TestBed,
    pub(crate) journal: &'a Journal,
    pub(crate) traffic: &'a Traffic<'a>,
    pub(crate) seed: u64,
    pub(crate) until: Instant,
    /// Number of times that each worker has struck.
    pub(crate) struck: [AtomicU64; Worker::ALL.len()],
    pub(crate) found: Mutex<Findings>,
}

impl Run<'_> {
    /// Runs all workers for this long, with disks and dropped packets only where the machine allows them.
    pub(crate) fn mix(
        &self,
        time: Duration,
        has_disk: bool,
        can_drop_packets: bool,
    ) -> anyhow::Result<(u64, Findings)> {
        let disk = has_disk.then(|| Disk::make(&self.folder.join("mixed-disk"))).transpose()?;
        let folder = disk.as_ref().map_or_else(|| self.folder.join("mixed-server"), |disk| disk.path().to_owned());
        // Ends before its disk.
        let server = PostgresServer::prepare(&folder, Durability::Full)?;
        let bed = TestBed::open(&server, &self.impatient_plan(NAME))?;
        self.run_fault_in(&bed, Refusals::Expected, |fault| {
            let mixed = Mixed {
                server: &server,
                disk: disk.as_ref(),
                can_drop_packets,
                bed: fault.bed,
                journal: fault.journal,
                traffic: fault.traffic,
                seed: self.seed,
                until: Instant::now() + time,
                struck: Default::default(),
                found: Mutex::default(),
            };
            mixed.run_workers()?;
            fault.found += mixed.found.into_inner().unwrap_or_else(PoisonError::into_inner);
            bound_memory(fault);
            let struck = mixed.struck.map(AtomicU64::into_inner);
            for (worker, _) in Worker::ALL.iter().zip(struck).filter(|(_, times)| *times == 0 && time >= LONG) {
                fault.found.is_wrong(format!("{worker:?} never struck"));
            }
            Ok(struck.iter().sum())
        })
    }
}

impl Mixed<'_> {
    /// Runs all workers until the time is over, then undoes what they have changed.
    fn run_workers(&self) -> anyhow::Result<()> {
        std::thread::scope(|scope| {
            let workers: Vec<_> = Worker::ALL
                .into_iter()
                .zip(&self.struck)
                .zip(FIRST_STREAM..)
                .map(|((worker, struck), stream)| {
                    scope.spawn(move || self.work(worker, struck, Random::new(self.seed, stream)))
                })
                .collect();
            workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| anyhow::anyhow!("a worker panicked")))
        })?;
        let calm = Instant::now() + CALM;
        while let Err(error) = self.server.restart().and_then(|()| self.settle(0)).and_then(|()| self.settle(1)) {
            let log = self.server.end_of_log();
            anyhow::ensure!(Instant::now() < calm, "PostgreSQL did not come back: {error:#}\nIts log ends:\n{log}");
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn work(&self, worker: Worker, struck: &AtomicU64, mut random: Random) {
        while Instant::now() < self.until {
            std::thread::sleep(random.milliseconds(PAUSE.0, PAUSE.1));
            let outcome = match worker {
                Worker::Server => self.strike_server(&mut random),
                Worker::Service => self.strike_service(&mut random),
                Worker::Network => self.strike_network(&mut random),
                Worker::Writer => self.freeze_writer(&mut random),
                Worker::Neighbour => self.disturb(&mut random),
                Worker::Drift => self.drift(&mut random),
                Worker::Log => self.leave_logs_unread(&mut random),
            };
            // A fault that needs a server which another worker has just killed does not count.
            struck.fetch_add(u64::from(outcome.is_ok()), Ordering::Relaxed);
        }
    }
}
