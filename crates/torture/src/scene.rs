//! Where a fault strikes: a database and services of its own, with clients at work all the while, and the count of what came
//! of it in the end.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::arena::{Arena, Plot};
use crate::audit::{Findings, audit};
use crate::ground::Ground;
use crate::journal::Journal;
use crate::random::Random;
use crate::traffic::Traffic;

/// Enough for batches of some size, few enough for two cores.
const CLIENTS: u64 = 24;
/// The deadline of services that are made to wait longer than it: shorter than the usual one, so that many such waits fit into
/// a run.
pub(crate) const SHORT_DEADLINE: Duration = Duration::from_secs(2);
const SHORT_DEADLINE_SETTING: (&str, &str) = ("INTAKE_DEADLINE", "2s");

/// What all faults have in common.
pub(crate) struct Scene<'a> {
    pub(crate) program: &'a Path,
    pub(crate) folder: &'a Path,
    pub(crate) seed: u64,
}

/// One fault at work.
pub(crate) struct Act<'a> {
    pub(crate) arena: &'a Arena,
    pub(crate) journal: &'a Journal,
    pub(crate) traffic: &'a Traffic<'a>,
    pub(crate) random: Random,
    /// What is found while it strikes.
    pub(crate) found: Findings,
}

/// What the clients must bear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusals {
    /// The database may be away for longer than a request waits: 503 is honest.
    Expected,
    /// Nothing befalls what they need: 503 is wrong.
    Wrong,
}

impl Scene<'_> {
    /// How an arena of this name is furnished.
    pub(crate) fn plot<'b>(&'b self, name: &'b str, settings: &'b [(&'b str, &'b str)]) -> Plot<'b> {
        Plot { program: self.program, folder: self.folder, name, seed: self.seed, settings }
    }

    /// The same for services that wait for a short time only.
    pub(crate) fn impatient_plot<'b>(&'b self, name: &'b str) -> Plot<'b> {
        self.plot(name, &[SHORT_DEADLINE_SETTING])
    }

    /// Clients work while the fault strikes; then everything is counted. Gives how often it struck, too.
    pub(crate) fn play(
        &self,
        ground: &Ground,
        name: &str,
        strike: impl FnOnce(&mut Act<'_>) -> anyhow::Result<u64>,
    ) -> anyhow::Result<(u64, Findings)> {
        self.play_in(&Arena::open(ground, &self.plot(name, &[]))?, Refusals::Expected, strike)
    }

    /// The same in an arena that is there.
    pub(crate) fn play_in(
        &self,
        arena: &Arena,
        refusals: Refusals,
        strike: impl FnOnce(&mut Act<'_>) -> anyhow::Result<u64>,
    ) -> anyhow::Result<(u64, Findings)> {
        let journal = Journal::begin(arena.folder.join("journal"))?;
        let traffic = match refusals {
            Refusals::Expected => Traffic::new(arena, &journal, self.seed),
            Refusals::Wrong => Traffic::served_throughout(arena, &journal, self.seed),
        };
        let (random, found) = (Random::new(self.seed, 5_000), Findings::default());
        let mut act = Act { arena, journal: &journal, traffic: &traffic, random, found };
        let struck = traffic.during(CLIENTS, || strike(&mut act))?;
        let mut found = act.found;
        // It tells more than another example.
        found.examples.extend(arena.unexpected());
        found += audit(&journal, &mut arena.register()?)?;
        Ok((struck, found))
    }
}

impl Act<'_> {
    /// Undisturbed work between two faults.
    pub(crate) fn rest(&mut self) {
        std::thread::sleep(self.random.milliseconds(30, 250));
    }

    /// Every service must acknowledge patients again this soon after that moment.
    pub(crate) fn must_serve(&mut self, since: Instant, within: Duration, after: &str) {
        let away = self.traffic.pulse.wait_for_all(since);
        self.found.away = self.found.away.max(Some(away));
        if away > within {
            let (away, within) = (away.as_secs_f64(), within.as_secs_f64());
            self.found
                .is_wrong(format!("no 201 of every service for {away:.1} s after {after}; must be {within:.1} s"));
        }
    }
}
