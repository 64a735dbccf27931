//! The setting in which a fault strikes: a database and services of its own with clients at work, and an audit in the
//! end.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::anyhow;

use crate::arena::{Arena, ArenaPlan};
use crate::audit::{Findings, audit};
use crate::ground::Ground;
use crate::journal::Journal;
use crate::random::Random;
use crate::reader::{self, Reader};
use crate::traffic::Traffic;

/// Enough clients for batches of some size, few enough for two cores.
const CLIENTS: u64 = 24;
/// A service that has not come back after this many times as long as it may take, will not.
const PATIENCE: u32 = 4;
/// The deadline of the services under faults that last longer than it: short, so that many of them fit into a run.
pub(crate) const SHORT_DEADLINE: Duration = Duration::from_secs(2);
/// The deadline of the services otherwise, which is the default one.
const USUAL_DEADLINE: Duration = Duration::from_secs(5);

/// What all faults have in common.
pub(crate) struct Scene<'a> {
    pub(crate) program: &'a Path,
    pub(crate) folder: &'a Path,
    pub(crate) seed: u64,
    pub(crate) slowness: u32,
}

/// One fault at work.
pub(crate) struct Act<'a> {
    pub(crate) arena: &'a Arena,
    pub(crate) journal: &'a Journal,
    pub(crate) traffic: &'a Traffic<'a>,
    pub(crate) random: Random,
    /// What is found while the fault strikes.
    pub(crate) found: Findings,
    pub(crate) slowness: u32,
}

/// Whether the clients may be refused with 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusals {
    /// The database may be away for longer than a request waits.
    Expected,
    /// The fault concerns nothing that the clients need.
    Wrong,
}

impl Scene<'_> {
    /// The plan of an arena with this name.
    pub(crate) fn plan<'b>(&'b self, name: &'b str, settings: &'b [(&'b str, &'b str)]) -> ArenaPlan<'b> {
        self.plan_with(name, USUAL_DEADLINE * self.slowness, settings)
    }

    /// The plan of an arena whose services have a short deadline.
    pub(crate) fn impatient_plan<'b>(&'b self, name: &'b str) -> ArenaPlan<'b> {
        self.plan_with(name, SHORT_DEADLINE, &[])
    }

    /// The plan of an arena whose services have this deadline.
    pub(crate) fn plan_with<'b>(
        &'b self,
        name: &'b str,
        deadline: Duration,
        settings: &'b [(&'b str, &'b str)],
    ) -> ArenaPlan<'b> {
        ArenaPlan { program: self.program, folder: self.folder, name, seed: self.seed, deadline, settings }
    }

    /// Runs clients while the fault strikes, then audits the register. Returns how often the fault struck, and the
    /// findings.
    pub(crate) fn play(
        &self,
        ground: &Ground,
        name: &str,
        strike: impl FnOnce(&mut Act<'_>) -> anyhow::Result<u64>,
    ) -> anyhow::Result<(u64, Findings)> {
        self.play_in(&Arena::open(ground, &self.plan(name, &[]))?, Refusals::Expected, strike)
    }

    /// The same in an existing arena.
    pub(crate) fn play_in(
        &self,
        arena: &Arena,
        refusals: Refusals,
        strike: impl FnOnce(&mut Act<'_>) -> anyhow::Result<u64>,
    ) -> anyhow::Result<(u64, Findings)> {
        let journal = Journal::begin(arena.folder.join("journal"))?;
        let traffic = match refusals {
            Refusals::Expected => Traffic::new(arena, &journal, self.seed, self.slowness),
            Refusals::Wrong => Traffic::served_throughout(arena, &journal, self.seed, self.slowness),
        };
        let (random, found) = (Random::new(self.seed, 5_000), Findings::default());
        let mut act = Act { arena, journal: &journal, traffic: &traffic, random, found, slowness: self.slowness };
        let is_over = AtomicBool::new(false);
        let readers = Reader::all(arena, self.program);
        let (struck, readers) = std::thread::scope(|scope| {
            let readers: Vec<_> = readers.into_iter().map(|reader| scope.spawn(|| reader.follow(&is_over))).collect();
            let struck = traffic.during(CLIENTS, || strike(&mut act));
            is_over.store(true, Ordering::SeqCst);
            let readers = readers.into_iter().map(|reader| reader.join().map_err(|_| anyhow!("a reader panicked"))?);
            (struck, readers.collect::<anyhow::Result<Vec<_>>>())
        });
        let (struck, readers) = (struck?, readers?);
        let mut found = act.found;
        // A line of the log says more than another example.
        found.examples.extend(arena.unexpected());
        found += audit(&journal, &mut arena.register()?)?;
        reader::audit(&readers, &mut arena.register()?, &mut found)?;
        Ok((struck, found))
    }
}

impl Act<'_> {
    /// Lets the clients work undisturbed between two faults.
    pub(crate) fn rest(&mut self) {
        std::thread::sleep(self.random.milliseconds(30, 250));
    }

    /// Requires every service to acknowledge patients again within this time, or longer on a busy machine.
    pub(crate) fn must_serve(&mut self, since: Instant, within: Duration, after: &str) {
        let within = within * self.slowness;
        let away = self.traffic.pulse.wait_for_all(since, within * PATIENCE);
        self.found.away = self.found.away.max(Some(away));
        if away > within {
            let (away, within) = (away.as_secs_f64(), within.as_secs_f64());
            self.found
                .is_wrong(format!("no 201 of every service for {away:.1} s after {after}; must be {within:.1} s"));
        }
    }
}
