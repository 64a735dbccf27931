//! The register is put back to an earlier moment while its services run, each of which must end, and then treated as
//! docs/operations/restoring.md says. What was acknowledged before the moment must be there; what is sent or imported
//! again must be there once; what was erased or blocked since stays so.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Context;
use intake_domain::Environment;
use intake_infra::Durability;

use crate::audit::{Findings, audit};
use crate::clock::Clock;
use crate::follower::{Follower, compare};
use crate::journal::{Erasure, Journal, Kind, Operation, read};
use crate::member_witnesses::MemberWitnesses;
use crate::operations::{Operations, command};
use crate::postgres_server::PostgresServer;
use crate::put_back::Backup;
use crate::run::{History, Refusals, Run};
use crate::test_bed::{INSTANCES, TestBed};
use crate::test_bed_plan::TestBedPlan;
use crate::traffic::Traffic;
use crate::verdict::MustSee;
use crate::witnesses::Witnesses;

/// Controls at the end of the first restore.
pub(crate) const CONTROLS: [(&str, MustSee); 4] = [
    ("an erasure is forgotten, and the patient sent again", MustSee::Returned),
    ("a replaced key works again", MustSee::Admitted),
    ("a service does not see that its database was replaced", MustSee::Unnoticed),
    ("an entry of the audit log is not printed", MustSee::Unfollowed),
];
pub(crate) const MEMBER_CONTROL: &str = "a member has a role again that was taken away";

/// Findings of the controls.
#[derive(Default)]
pub(crate) struct Controls {
    pub(crate) others: Findings,
    pub(crate) members: Findings,
}

/// Time for which clients work before and after the moment.
const WORK: Duration = Duration::from_secs(2);
/// Time that everything may take which is done again.
const RECOVERY: Duration = Duration::from_secs(120);
/// Time in which a service must notice that its database was replaced.
const NOTICED: Duration = Duration::from_secs(5);
/// The service that is frozen for a control, and for how long.
const FROZEN: (usize, Duration) = (1, Duration::from_secs(1));

impl Run<'_> {
    /// Restores a new server each time, in turns from a base backup and, under a clock that jumps, from a copy of the
    /// files. Returns the findings, and those of the controls.
    pub(crate) fn restore(&self, times: u64, controls: &mut Controls) -> anyhow::Result<(u64, Findings)> {
        let mut found = Findings::default();
        for time in 0..times {
            let is_by_files = !(self.seed + time).is_multiple_of(2);
            let name = format!("restore_{time}");
            let folder = self.folder.join(format!("{name}_server"));
            let clock = if is_by_files { Clock::in_folder(&folder.join("clock"))? } else { None };
            let controls = (time == 0).then_some(&mut *controls);
            let server = match &clock {
                Some(clock) => PostgresServer::with_clock(&folder, clock)?,
                None => PostgresServer::prepare(&folder, Durability::Full)?,
            };
            found += self.restore_once(&name, &server, clock, controls)?;
        }
        Ok((times, found))
    }

    fn restore_once(
        &self,
        name: &str,
        server: &PostgresServer,
        clock: Option<Clock>,
        mut controls: Option<&mut Controls>,
    ) -> anyhow::Result<Findings> {
        let keeps_time = clock.is_none();
        let plan = TestBedPlan { environment: Environment::Production, keeps_time, ..self.plan(name, &[]) };
        let bed = TestBed::open(server, &plan)?;
        let backup = Backup::begin(server, clock)?;
        let mut witnesses = Witnesses::make(&bed);
        let follower = Follower::start(self.program, &bed)?;
        let (mut before, mut members) = (HashMap::new(), None);
        let (_, mut history) = self.record(&bed, Refusals::Expected, |fault| {
            let people = self.with_operations(fault.bed, fault.journal, fault.traffic, MemberWitnesses::make)?;
            backup.jump(&mut fault.random)?;
            fault.wait_for_erasure(WORK);
            backup.jump(&mut fault.random)?;
            before = read(fault.journal.path())?;
            backup.mark_moment(server)?;
            fault.must_serve(Instant::now(), NOTICED, "the moment");
            backup.jump(&mut fault.random)?;
            witnesses.block(self, fault)?;
            self.with_operations(fault.bed, fault.journal, fault.traffic, |all| people.take_away(all))?;
            members = Some(people);
            fault.wait_for_erasure(WORK);
            Ok(1)
        })?;
        let (mut printed, entries) = follower.finish(&bed, Instant::now() + RECOVERY)?;
        compare(&printed, &entries, &mut history.found);
        if let Some(controls) = controls.as_deref_mut() {
            printed.retain(|id| entries.first() != Some(id));
            compare(&printed, &entries, &mut controls.others);
        }
        history.lose(self, server, &backup, controls.as_deref_mut().map(|controls| &mut controls.others))?;
        history.do_again(self, &before, &witnesses)?;
        let members = members.context("no members were there")?;
        history.found += self.try_members(&history, &members, controls.as_deref_mut().map(|all| &mut all.members))?;
        let found = history.audit()?;
        if let Some(Controls { others, .. }) = controls {
            witnesses.bring_back(&bed)?;
            witnesses.must_stay(&history.traffic(self)?, others);
            *others += audit(&history.journal, &mut bed.register()?)?;
        }
        Ok(found)
    }
}

impl Run<'_> {
    /// Tries what members have lost, and for a control once more when one has it back.
    fn try_members(
        &self,
        history: &History<'_>,
        members: &MemberWitnesses,
        control: Option<&mut Findings>,
    ) -> anyhow::Result<Findings> {
        let (traffic, mut found) = (history.traffic(self)?, Findings::default());
        self.with_operations(history.bed, &history.journal, &traffic, |operations| {
            members.must_stay(operations, &mut found);
            if let Some(control) = control {
                members.bring_back(operations)?;
                members.must_stay(operations, control);
            }
            Ok(found)
        })
    }

    /// Does something as operators and members do.
    fn with_operations<T>(
        &self,
        bed: &TestBed,
        journal: &Journal,
        traffic: &Traffic<'_>,
        act: impl FnOnce(&Operations<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let (program, seed, is_over) = (self.program, self.seed, AtomicBool::new(true));
        act(&Operations { program, seed, bed, journal, traffic, is_over: &is_over })
    }
}

impl<'a> History<'a> {
    /// Puts the backup back while the services run. Each must end; then the documented steps follow.
    fn lose(
        &mut self,
        run: &Run<'_>,
        server: &PostgresServer,
        backup: &Backup,
        controls: Option<&mut Findings>,
    ) -> anyhow::Result<()> {
        let copy = self.bed.folder.join("audit.json");
        let recorded = command(run.program, self.bed, &["audit", "--json"]).map_err(anyhow::Error::msg)?;
        fs::write(&copy, recorded)?;
        let (frozen, time) = FROZEN;
        if controls.is_some() {
            self.bed.signal(frozen, "STOP")?;
        }
        backup.put_back(server)?;
        if let Some(controls) = controls {
            self.must_end(frozen, time, controls)?;
            self.bed.signal(frozen, "CONT")?;
        }
        let mut found = Findings::default();
        for instance in 0..INSTANCES {
            self.must_end(instance, NOTICED * run.slowness, &mut found)?;
        }
        self.found += found;
        let copy = copy.to_string_lossy();
        let restored = ["restored", "--audit", &copy, "--apply", "--yes"];
        command(run.program, self.bed, &restored).map_err(|why| anyhow::anyhow!("intake restored: {why}"))?;
        (0..INSTANCES).try_for_each(|instance| self.bed.kill_service(instance))
    }

    fn must_end(&self, instance: usize, within: Duration, found: &mut Findings) -> anyhow::Result<()> {
        if !self.bed.ends_within(instance, within)? {
            found.is_unnoticed(format!("service {instance} runs on, although its database was replaced"));
        }
        Ok(())
    }

    /// Does again what was done since the moment, as far as that is possible.
    fn do_again(
        &mut self,
        run: &Run<'_>,
        before: &HashMap<u64, Operation>,
        witnesses: &Witnesses,
    ) -> anyhow::Result<()> {
        let after = read(self.journal.path())?;
        let is_lost = |number: &u64, operation: &Operation| {
            operation.created.is_some() && before.get(number).is_none_or(|before| before.created.is_none())
        };
        let lost: Vec<_> = after.iter().filter(|(number, operation)| is_lost(number, operation)).collect();
        lost.iter().for_each(|(number, _)| self.journal.forgotten(**number));
        for reader in &mut self.readers {
            reader.start_again_if_refused()?;
        }
        let mut found = Findings::default();
        let traffic = self.traffic(run)?;
        witnesses.must_stay(&traffic, &mut found);
        let until = Instant::now() + RECOVERY;
        for (number, operation) in lost {
            if operation.kind == Kind::Safe && operation.erasure == Erasure::None {
                traffic.send_again_until_acknowledged(*number, operation.organisation, until)?;
            }
        }
        self.found += found;
        self.imports.iter().try_for_each(|import| import.repeat(self.bed, &self.journal))
    }

    /// Clients after the restore, whose patients are new ones.
    fn traffic<'s>(&'s self, run: &Run<'_>) -> anyhow::Result<Traffic<'s>> {
        let last = read(self.journal.path())?.into_keys().max().unwrap_or_default();
        Ok(Traffic::new(self.bed, &self.journal, run.seed, run.slowness).with_numbers_from(last + 1))
    }
}
