//! All faults at once: several threads, called hands, each with one kind of faults, strike at random for minutes and do
//! not wait for each other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use intake_infra::Durability;

use crate::arena::Arena;
use crate::audit::Findings;
use crate::disk::Disk;
use crate::floods::bound_memory;
use crate::ground::Ground;
use crate::journal::Journal;
use crate::random::Random;
use crate::scene::{Refusals, Scene};
use crate::traffic::Traffic;

pub(crate) const NAME: &str = "mixed";
/// The random stream of the first hand.
const FIRST_STREAM: u64 = 9_000;
/// Between two faults of one hand, in milliseconds: most of the time some of the others are at work.
const PAUSE: (u64, u64) = (200, 2_500);
/// In a run of this length every hand must have struck.
const LONG: Duration = Duration::from_secs(60);
/// How long PostgreSQL may take to be reachable after the last fault.
const CALM: Duration = Duration::from_secs(180);

/// The hands, each with one kind of faults.
#[derive(Clone, Copy, Debug)]
enum Hand {
    Server,
    Service,
    Network,
    Writer,
    Neighbour,
    Drift,
}

impl Hand {
    const ALL: [Self; 6] = [Self::Server, Self::Service, Self::Network, Self::Writer, Self::Neighbour, Self::Drift];
}

/// What the hands work on.
pub(crate) struct Mixed<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) disk: Option<&'a Disk>,
    pub(crate) can_drop_packets: bool,
    pub(crate) arena: &'a Arena,
    pub(crate) journal: &'a Journal,
    pub(crate) traffic: &'a Traffic<'a>,
    pub(crate) seed: u64,
    pub(crate) until: Instant,
    /// How often each hand has struck.
    pub(crate) struck: [AtomicU64; Hand::ALL.len()],
    pub(crate) found: Mutex<Findings>,
}

impl Scene<'_> {
    /// Runs all hands for this long, with disks and dropped packets only where the machine allows them.
    pub(crate) fn mix(
        &self,
        time: Duration,
        has_disk: bool,
        can_drop_packets: bool,
    ) -> anyhow::Result<(u64, Findings)> {
        let disk = has_disk.then(|| Disk::make(&self.folder.join("mixed-disk"))).transpose()?;
        let folder = disk.as_ref().map_or_else(|| self.folder.join("mixed-ground"), |disk| disk.path().to_owned());
        // Ends before its disk.
        let ground = Ground::prepare(&folder, Durability::Full)?;
        let arena = Arena::open(&ground, &self.impatient_plan(NAME))?;
        self.play_in(&arena, Refusals::Expected, |act| {
            let mixed = Mixed {
                ground: &ground,
                disk: disk.as_ref(),
                can_drop_packets,
                arena: act.arena,
                journal: act.journal,
                traffic: act.traffic,
                seed: self.seed,
                until: Instant::now() + time,
                struck: Default::default(),
                found: Mutex::default(),
            };
            mixed.let_loose()?;
            act.found += mixed.found.into_inner().unwrap_or_else(PoisonError::into_inner);
            bound_memory(act);
            let struck = mixed.struck.map(AtomicU64::into_inner);
            for (hand, _) in Hand::ALL.iter().zip(struck).filter(|(_, times)| *times == 0 && time >= LONG) {
                act.found.is_wrong(format!("{hand:?} never struck"));
            }
            Ok(struck.iter().sum())
        })
    }
}

impl Mixed<'_> {
    /// Runs all hands until the time is over, then undoes what they have changed.
    fn let_loose(&self) -> anyhow::Result<()> {
        std::thread::scope(|scope| {
            let hands: Vec<_> = Hand::ALL
                .into_iter()
                .zip(&self.struck)
                .zip(FIRST_STREAM..)
                .map(|((hand, struck), stream)| {
                    scope.spawn(move || self.work(hand, struck, Random::new(self.seed, stream)))
                })
                .collect();
            hands.into_iter().try_for_each(|hand| hand.join().map_err(|_| anyhow::anyhow!("a hand panicked")))
        })?;
        let calm = Instant::now() + CALM;
        while let Err(error) = self.ground.restart().and_then(|()| self.settle(0)).and_then(|()| self.settle(1)) {
            let log = self.ground.end_of_log();
            anyhow::ensure!(Instant::now() < calm, "PostgreSQL did not come back: {error:#}\nIts log ends:\n{log}");
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn work(&self, hand: Hand, struck: &AtomicU64, mut random: Random) {
        while Instant::now() < self.until {
            std::thread::sleep(random.milliseconds(PAUSE.0, PAUSE.1));
            let outcome = match hand {
                Hand::Server => self.strike_server(&mut random),
                Hand::Service => self.arena.kill_service(usize::from(random.one_in(2))),
                Hand::Network => self.strike_network(&mut random),
                Hand::Writer => self.freeze_writer(&mut random),
                Hand::Neighbour => self.disturb(&mut random),
                Hand::Drift => self.drift(&mut random),
            };
            // A fault that needs a server which another hand has just killed does not count.
            struck.fetch_add(u64::from(outcome.is_ok()), Ordering::Relaxed);
        }
    }
}
