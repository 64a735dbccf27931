//! Everything at once: several hands, each with faults of its own kind, choose at random what they do and when, for minutes,
//! and do not wait for each other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use intake_infra::SERVICE_ROLE;
use intake_infra::embedded::Durability;
use intake_test_support::{HeldRow, freeze_writer};

use crate::arena::{Arena, INSTANCES, application_name};
use crate::audit::Findings;
use crate::disk::Disk;
use crate::drift::turn_off;
use crate::floods::{FloodKind, bound_memory, flood};
use crate::ground::Ground;
use crate::hangs::around_deadline;
use crate::journal::{Journal, Kind};
use crate::people::patient;
use crate::random::Random;
use crate::route::Dropping;
use crate::scene::{Act, Refusals, Scene};
use crate::traffic::{Traffic, retry_key};

const NAME: &str = "mixed";
/// Places among all sequences of chance: of a client who wants a row that is held, and of the first hand.
const PLACE: u64 = 8_000;
const FIRST_HAND: u64 = 9_000;
/// Between two faults of one hand: most of the time some of the others are at work.
const PAUSE: (u64, u64) = (200, 2_500);
/// How long cuts, floods, full disks and dropped packets last.
const WHILE: (u64, u64) = (300, 3_000);
/// Floods are short: the clients must get through between them.
const FLOOD: (u64, u64) = (200, 1_500);
/// Seconds may pass before PostgreSQL can be reached at all, in the midst of all this.
const CALM: Duration = Duration::from_secs(60);

/// What befalls the server, one thing at a time: no two of them can be told apart by those who wait for it.
#[derive(Clone, Copy, Debug)]
enum ToServer {
    Kill,
    KillHead,
    KillPart,
    Freeze,
    FillDisk,
    CutPower,
}

/// Who does what. Each hand has one kind of faults.
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
struct Mixed<'a> {
    ground: &'a Ground,
    disk: Option<&'a Disk>,
    can_drop_packets: bool,
    arena: &'a Arena,
    journal: &'a Journal,
    traffic: &'a Traffic<'a>,
    seed: u64,
    until: Instant,
    struck: AtomicU64,
    found: Mutex<Findings>,
}

impl Scene<'_> {
    /// For so long. Disks and packets only where they can be had.
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
        let arena = Arena::open(&ground, &self.impatient_plot(NAME))?;
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
                struck: AtomicU64::new(0),
                found: Mutex::default(),
            };
            mixed.let_loose()?;
            act.found += mixed.found.into_inner().unwrap_or_else(PoisonError::into_inner);
            bound_memory(act);
            Ok(mixed.struck.into_inner())
        })
    }
}

impl Mixed<'_> {
    /// All hands at once, until the time is over; then everything is as it was.
    fn let_loose(&self) -> anyhow::Result<()> {
        std::thread::scope(|scope| {
            let hands: Vec<_> = Hand::ALL
                .into_iter()
                .zip(0_u64..)
                .map(|(hand, place)| scope.spawn(move || self.work(hand, Random::new(self.seed, FIRST_HAND + place))))
                .collect();
            hands.into_iter().try_for_each(|hand| hand.join().map_err(|_| anyhow::anyhow!("a hand panicked")))
        })?;
        let calm = Instant::now() + CALM;
        while let Err(error) = self.ground.restart().and_then(|()| self.settle(0)).and_then(|()| self.settle(1)) {
            anyhow::ensure!(Instant::now() < calm, "PostgreSQL did not come back: {error}");
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn work(&self, hand: Hand, mut random: Random) {
        while Instant::now() < self.until {
            std::thread::sleep(random.milliseconds(PAUSE.0, PAUSE.1));
            let struck = match hand {
                Hand::Server => self.strike_server(&mut random),
                Hand::Service => self.arena.kill_service(usize::from(random.one_in(2))),
                Hand::Network => self.strike_network(&mut random),
                Hand::Writer => self.freeze_writer(&mut random),
                Hand::Neighbour => self.disturb(&mut random),
                Hand::Drift => self.drift(&mut random),
            };
            // What needs a server that another hand has just killed did not strike.
            self.struck.fetch_add(u64::from(struck.is_ok()), Ordering::Relaxed);
        }
    }

    fn strike_server(&self, random: &mut Random) -> anyhow::Result<()> {
        use ToServer::{CutPower, FillDisk, Freeze, Kill, KillHead, KillPart};
        let all = [Kill, KillHead, KillPart, Freeze, FillDisk, CutPower];
        // The last two need a disk of our own.
        let count = if self.disk.is_some() { all.len() } else { all.len() - 2 };
        let choice = all.get(usize::try_from(random.below(count as u64))?).copied();
        let struck = match (choice.unwrap_or(Freeze), self.disk) {
            (Kill, _) => self.ground.kill(),
            (KillHead, _) => self.ground.kill_head(),
            (KillPart, _) => self.ground.kill_part(random),
            (FillDisk, Some(disk)) => disk.fill().and_then(|()| {
                std::thread::sleep(random.milliseconds(WHILE.0, WHILE.1));
                disk.empty()
            }),
            (CutPower, Some(disk)) => disk.cut_power(),
            (Freeze | FillDisk | CutPower, _) => self.ground.freeze().map(|frozen| {
                let is_short = random.one_in(2);
                std::thread::sleep(around_deadline(random, is_short));
                drop(frozen);
            }),
        };
        struck.and(self.ground.restart())
    }

    fn strike_network(&self, random: &mut Random) -> anyhow::Result<()> {
        let time = random.milliseconds(WHILE.0, WHILE.1);
        match random.below(if self.can_drop_packets { 3 } else { 2 }) {
            0 => {
                self.arena.database_proxy.cut_every(150_000, 8_000);
                std::thread::sleep(time);
                self.arena.database_proxy.cut_every(0, 0);
            }
            1 => {
                self.arena.cut_answers(6_000);
                std::thread::sleep(time);
                self.arena.cut_answers(0);
            }
            _ => {
                let dropping = Dropping::to(self.arena.database_proxy.address.ip())?;
                std::thread::sleep(time);
                drop(dropping);
            }
        }
        Ok(())
    }

    fn freeze_writer(&self, random: &mut Random) -> anyhow::Result<()> {
        let instance = usize::try_from(random.below(INSTANCES as u64))?;
        let writer = freeze_writer(&self.arena.urls.owner, &application_name(instance)).map_err(anyhow::Error::msg)?;
        let is_short = random.one_in(2);
        std::thread::sleep(around_deadline(random, is_short));
        if random.one_in(3) {
            writer.kill();
        } else {
            drop(writer);
        }
        Ok(())
    }

    /// A tenant who floods, or who holds a row.
    fn disturb(&self, random: &mut Random) -> anyhow::Result<()> {
        let choice = usize::try_from(random.below(FloodKind::ALL.len() as u64 + 2))?;
        let Some(&kind) = FloodKind::ALL.get(choice) else { return self.hold_row(random) };
        let (random, found) = (random.clone(), Findings::default());
        let mut act = Act { arena: self.arena, journal: self.journal, traffic: self.traffic, random, found };
        let time = act.random.milliseconds(FLOOD.0, FLOOD.1);
        flood(&mut act, kind, time)?;
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) += act.found;
        Ok(())
    }

    fn hold_row(&self, random: &mut Random) -> anyhow::Result<()> {
        let Some((clinic, _)) = self.arena.clinics.first() else { return Ok(()) };
        let number = self.traffic.next_number();
        self.journal.sent(number, clinic.organisation.to_string().parse()?, Kind::Safe);
        let held = HeldRow::insert(&self.arena.urls.owner, clinic.organisation, &retry_key(number), &patient(number));
        let held = held.map_err(anyhow::Error::msg)?;
        let is_short = random.one_in(2);
        let hold = around_deadline(random, is_short);
        std::thread::scope(|scope| {
            let client = scope.spawn(|| self.traffic.send_until_acknowledged(PLACE, number, self.until));
            std::thread::sleep(hold);
            let ended = if random.one_in(2) { held.commit() } else { held.roll_back() };
            client.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
            ended.map_err(anyhow::Error::msg)
        })
    }

    fn drift(&self, random: &mut Random) -> anyhow::Result<()> {
        let time = random.below(2);
        self.ground.administer(&turn_off(NAME, time).0)?;
        self.ground.end_sessions(SERVICE_ROLE)?;
        std::thread::sleep(random.milliseconds(WHILE.0, WHILE.1));
        self.settle(time)
    }

    /// Takes back what drifted.
    fn settle(&self, time: u64) -> anyhow::Result<()> {
        self.ground.administer(&turn_off(NAME, time).1)
    }
}
