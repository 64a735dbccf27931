//! The setting in which a fault strikes: a database and services of its own with clients at work, and an audit in the
//! end.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use intake_domain::Environment;

use crate::audit::{Findings, audit};
use crate::imports::Import;
use crate::journal::Journal;
use crate::operations::{Operations, PAUSE};
use crate::postgres_server::PostgresServer;
use crate::random::Random;
use crate::reader::{self, Reader};
use crate::test_bed::TestBed;
use crate::test_bed_plan::TestBedPlan;
use crate::traffic::Traffic;

/// Enough clients for batches of some size, few enough for two cores.
const CLIENTS: u64 = 24;
/// A service that has not come back after this many times as long as it may take, will not.
const PATIENCE: u32 = 4;
/// The deadline of the services under faults that last longer than it: short, so that many of them fit into a run.
pub(crate) const SHORT_DEADLINE: Duration = Duration::from_secs(2);
/// The deadline of the services otherwise, which is the default one.
const USUAL_DEADLINE: Duration = Duration::from_secs(5);

/// Things that all faults have in common.
pub(crate) struct Run<'a> {
    pub(crate) program: &'a Path,
    pub(crate) folder: &'a Path,
    pub(crate) seed: u64,
    pub(crate) slowness: u32,
}

/// One fault at work.
pub(crate) struct Fault<'a> {
    pub(crate) bed: &'a TestBed,
    pub(crate) journal: &'a Journal,
    pub(crate) traffic: &'a Traffic<'a>,
    pub(crate) random: Random,
    /// Findings while the fault strikes.
    pub(crate) found: Findings,
    pub(crate) slowness: u32,
}

/// Verdict on clients that are refused with 503.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusals {
    /// The database may be away for longer than a request waits.
    Expected,
    /// The fault concerns nothing that the clients need.
    Wrong,
}

impl Run<'_> {
    /// The plan of an bed with this name.
    pub(crate) fn plan<'b>(&'b self, name: &'b str, settings: &'b [(&'b str, &'b str)]) -> TestBedPlan<'b> {
        self.plan_with(name, USUAL_DEADLINE * self.slowness, settings)
    }

    /// The plan of an bed whose services have a short deadline.
    pub(crate) fn impatient_plan<'b>(&'b self, name: &'b str) -> TestBedPlan<'b> {
        self.plan_with(name, SHORT_DEADLINE, &[])
    }

    /// The plan of an bed whose services have this deadline.
    pub(crate) fn plan_with<'b>(
        &'b self,
        name: &'b str,
        deadline: Duration,
        settings: &'b [(&'b str, &'b str)],
    ) -> TestBedPlan<'b> {
        TestBedPlan {
            program: self.program,
            folder: self.folder,
            name,
            seed: self.seed,
            environment: Environment::Development,
            keeps_time: true,
            deadline,
            settings,
        }
    }

    /// Runs clients and operations while the fault strikes, then audits the register. Returns how often the fault
    /// struck, and the findings.
    pub(crate) fn run_fault(
        &self,
        server: &PostgresServer,
        name: &str,
        strike: impl FnOnce(&mut Fault<'_>) -> anyhow::Result<u64>,
    ) -> anyhow::Result<(u64, Findings)> {
        self.run_fault_in(&TestBed::open(server, &self.plan(name, &[]))?, Refusals::Expected, strike)
    }

    /// The same in an existing bed.
    pub(crate) fn run_fault_in(
        &self,
        bed: &TestBed,
        refusals: Refusals,
        strike: impl FnOnce(&mut Fault<'_>) -> anyhow::Result<u64>,
    ) -> anyhow::Result<(u64, Findings)> {
        let (struck, mut history) = self.record(bed, refusals, strike)?;
        Ok((struck, history.audit()?))
    }

    /// Runs clients and operations while the fault strikes. Nothing has been audited yet.
    pub(crate) fn record<'a>(
        &self,
        bed: &'a TestBed,
        refusals: Refusals,
        strike: impl FnOnce(&mut Fault<'_>) -> anyhow::Result<u64>,
    ) -> anyhow::Result<(u64, History<'a>)> {
        let journal = Journal::begin(bed.folder.join("journal"))?;
        let traffic = match refusals {
            Refusals::Expected => Traffic::new(bed, &journal, self.seed, self.slowness),
            Refusals::Wrong => Traffic::served_throughout(bed, &journal, self.seed, self.slowness),
        };
        let (random, found) = (Random::new(self.seed, 5_000), Findings::default());
        let mut fault = Fault { bed, journal: &journal, traffic: &traffic, random, found, slowness: self.slowness };
        let (faults_are_over, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
        let (program, seed) = (self.program, self.seed);
        let operations =
            Operations { program, seed, bed, journal: &journal, traffic: &traffic, is_over: &faults_are_over };
        let readers = Reader::all(bed, self.program, self.seed);
        let (struck, outcomes, readers) = std::thread::scope(|scope| {
            let readers: Vec<_> =
                readers.into_iter().map(|reader| scope.spawn(|| reader.follow(&journal, &is_over))).collect();
            let working = operations.start(scope);
            let struck = traffic.during(CLIENTS, || {
                let struck = strike(&mut fault);
                faults_are_over.store(true, Ordering::SeqCst);
                struck
            });
            let outcomes = working.into_iter().map(|one| one.join().map_err(|_| anyhow!("an operation panicked"))?);
            let outcomes = outcomes.collect::<anyhow::Result<Vec<_>>>();
            is_over.store(true, Ordering::SeqCst);
            let readers = readers.into_iter().map(|reader| reader.join().map_err(|_| anyhow!("a reader panicked")));
            (struck, outcomes, readers.collect::<anyhow::Result<Vec<_>>>())
        });
        let (struck, outcomes, readers, mut found) = (struck?, outcomes?, readers?, fault.found);
        let mut imports = Vec::new();
        for (of_one, imported) in outcomes {
            found += of_one;
            imports.extend(imported);
        }
        Ok((struck, History { bed, journal, readers, imports, found }))
    }
}

/// Record of what was done in a run, to be compared with what is there.
pub(crate) struct History<'a> {
    pub(crate) bed: &'a TestBed,
    pub(crate) journal: Journal,
    pub(crate) readers: Vec<Reader>,
    pub(crate) imports: Vec<Import>,
    pub(crate) found: Findings,
}

impl History<'_> {
    /// Reads once more, and compares the journal and what was read with the register.
    pub(crate) fn audit(&mut self) -> anyhow::Result<Findings> {
        // A line of the log says more than another example.
        self.found.examples.extend(self.bed.unexpected());
        for reader in &mut self.readers {
            reader.finish(&self.journal)?;
        }
        self.found += audit(&self.journal, &mut self.bed.register()?)?;
        reader::audit(&self.readers, &self.journal, &mut self.bed.register()?, &mut self.found)?;
        Ok(self.found.clone())
    }
}

impl Fault<'_> {
    /// Lets the clients work undisturbed between two faults.
    pub(crate) fn rest(&mut self) {
        std::thread::sleep(self.random.milliseconds(30, 250));
    }

    /// Lets the clients work undisturbed for this long, and until one more patient has been erased.
    pub(crate) fn wait_for_erasure(&self, time: Duration) {
        let (since, before) = (Instant::now(), self.journal.erased_ids().len());
        std::thread::sleep(time);
        while self.journal.erased_ids().len() == before && since.elapsed() < time + self.traffic.patience() {
            std::thread::sleep(PAUSE);
        }
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
