//! The faults of each worker, for the run in which all strike at once.

use std::sync::PoisonError;

use intake_infra::SERVICE_ROLE;
use intake_test_support::{HeldRow, freeze_writer};

use crate::audit::Findings;
use crate::clock::{Clock, offset};
use crate::drift::turn_off;
use crate::floods::{FloodKind, flood};
use crate::hangs::around_deadline;
use crate::journal::Kind;
use crate::mixed::{Mixed, NAME};
use crate::people::patient;
use crate::random::Random;
use crate::route::Dropping;
use crate::run::Fault;
use crate::test_bed::{INSTANCES, application_name};
use crate::traffic::retry_key;

/// Time for which cuts, full disks and dropped packets last, in milliseconds.
const WHILE: (u64, u64) = (300, 3_000);
/// Time that floods last, in milliseconds: short, because the other clients must be served between them.
const FLOOD: (u64, u64) = (200, 1_500);
/// The random stream of a client that sends the key of a locked row.
const STREAM: u64 = 8_000;

/// Fault of the server, one fault at a time: two at once would look the same as one.
#[derive(Clone, Copy, Debug)]
enum ToServer {
    Kill,
    KillParent,
    KillChild,
    Freeze,
    FillDisk,
    CutPower,
}

impl Mixed<'_> {
    pub(crate) fn strike_server(&self, random: &mut Random) -> anyhow::Result<()> {
        use ToServer::{CutPower, FillDisk, Freeze, Kill, KillChild, KillParent};
        let all = [Kill, KillParent, KillChild, Freeze, FillDisk, CutPower];
        // The last two need a test disk.
        let count = if self.disk.is_some() { all.len() } else { all.len() - 2 };
        let choice = all.get(usize::try_from(random.below(count as u64))?).copied();
        let struck = match (choice.unwrap_or(Freeze), self.disk) {
            (Kill, _) => self.server.kill(),
            (KillParent, _) => self.server.kill_parent(),
            (KillChild, _) => self.server.kill_child(random),
            (FillDisk, Some(disk)) => disk.fill().and_then(|()| {
                std::thread::sleep(random.milliseconds(WHILE.0, WHILE.1));
                disk.empty()
            }),
            (CutPower, Some(disk)) => disk.cut_power(),
            (Freeze | FillDisk | CutPower, _) => self.server.freeze().map(|frozen| {
                let is_short = random.one_in(2);
                std::thread::sleep(around_deadline(random, is_short));
                drop(frozen);
            }),
        };
        struck.and(self.server.restart())
    }

    /// Kills a service, and starts it again with the right clock or a wrong one.
    pub(crate) fn strike_service(&self, random: &mut Random) -> anyhow::Result<()> {
        let instance = usize::from(random.one_in(2));
        let clock = Clock::in_folder(&self.bed.folder.join(format!("clock-{instance}")))?;
        match clock.filter(|_| random.one_in(2)) {
            Some(clock) => {
                clock.set(offset(random))?;
                self.bed.start_with_clock(instance, &clock)
            }
            None => self.bed.kill_service(instance),
        }
    }

    pub(crate) fn leave_logs_unread(&self, random: &mut Random) -> anyhow::Result<()> {
        self.bed.leave_logs_unread(random.milliseconds(WHILE.0, WHILE.1));
        Ok(())
    }

    pub(crate) fn strike_network(&self, random: &mut Random) -> anyhow::Result<()> {
        let time = random.milliseconds(WHILE.0, WHILE.1);
        match random.below(if self.can_drop_packets { 3 } else { 2 }) {
            0 => {
                self.bed.database_proxy.cut_every(150_000, 8_000);
                std::thread::sleep(time);
                self.bed.database_proxy.cut_every(0, 0);
            }
            1 => {
                self.bed.cut_answers(6_000);
                std::thread::sleep(time);
                self.bed.cut_answers(0);
            }
            _ => {
                let dropping = Dropping::to(self.bed.database_proxy.address.ip())?;
                std::thread::sleep(time);
                drop(dropping);
            }
        }
        Ok(())
    }

    pub(crate) fn freeze_writer(&self, random: &mut Random) -> anyhow::Result<()> {
        let instance = usize::try_from(random.below(INSTANCES as u64))?;
        let writer = freeze_writer(&self.bed.urls.owner, &application_name(instance)).map_err(anyhow::Error::msg)?;
        let is_short = random.one_in(2);
        std::thread::sleep(around_deadline(random, is_short));
        if random.one_in(3) {
            writer.kill();
        } else {
            drop(writer);
        }
        Ok(())
    }

    /// One tenant floods, or holds a row.
    pub(crate) fn disturb(&self, random: &mut Random) -> anyhow::Result<()> {
        let choice = usize::try_from(random.below(FloodKind::ALL.len() as u64 + 2))?;
        let Some(&kind) = FloodKind::ALL.get(choice) else { return self.hold_row(random) };
        let (random, found) = (random.clone(), Findings::default());
        let (bed, journal, traffic) = (self.bed, self.journal, self.traffic);
        let mut fault = Fault { bed, journal, traffic, random, found, slowness: 1 };
        let time = fault.random.milliseconds(FLOOD.0, FLOOD.1);
        flood(&mut fault, kind, time)?;
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) += fault.found;
        Ok(())
    }

    fn hold_row(&self, random: &mut Random) -> anyhow::Result<()> {
        let Some((clinic, _)) = self.bed.clinics.first() else { return Ok(()) };
        let number = self.traffic.next_number();
        self.journal.sent(number, clinic.organisation.to_string().parse()?, Kind::Safe);
        let held = HeldRow::insert(&self.bed.urls.owner, clinic.organisation, &retry_key(number), &patient(number));
        let held = held.map_err(anyhow::Error::msg)?;
        let is_short = random.one_in(2);
        let hold = around_deadline(random, is_short);
        std::thread::scope(|scope| {
            let client = scope.spawn(|| self.traffic.send_until_acknowledged(STREAM, number, self.until));
            std::thread::sleep(hold);
            let ended = if random.one_in(2) { held.commit() } else { held.roll_back() };
            client.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
            ended.map_err(anyhow::Error::msg)
        })
    }

    pub(crate) fn drift(&self, random: &mut Random) -> anyhow::Result<()> {
        let time = random.below(2);
        self.server.administer(&turn_off(NAME, time).0)?;
        self.server.end_sessions(SERVICE_ROLE)?;
        std::thread::sleep(random.milliseconds(WHILE.0, WHILE.1));
        self.settle(time)
    }

    /// Undoes the drift.
    pub(crate) fn settle(&self, time: u64) -> anyhow::Result<()> {
        self.server.administer(&turn_off(NAME, time).1)
    }
}
