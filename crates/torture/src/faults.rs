//! The faults, each over a database and services of its own, with clients at work all the while.

use std::path::Path;
use std::time::Duration;

use intake_infra::embedded::Durability;

use crate::arena::{Arena, Ground, INSTANCES};
use crate::audit::{Findings, audit};
use crate::disk::Disk;
use crate::journal::Journal;
use crate::races;
use crate::random::Random;
use crate::route::Dropping;
use crate::traffic::Traffic;

/// Enough for batches of some size, few enough for two cores.
const CLIENTS: u64 = 24;
/// Of undisturbed work between two faults.
const WORK: (u64, u64) = (30, 250);
/// How long packets are dropped.
const DROPPED: (u64, u64) = (200, 6_000);
/// How long a disk stays full.
const FULL: (u64, u64) = (300, 1_500);
/// Cuts on the way to the database: of what it is sent, a few batches; of what it answers, a few answers.
const DATABASE_CUTS: (u64, u64) = (150_000, 8_000);
/// Cuts in answers: a few of them.
const ANSWER_CUTS: u64 = 6_000;
/// Controls lose something within so many tries, or they see nothing.
const CONTROL_TRIES: u64 = 10;

/// Where a fault strikes.
pub(crate) struct Scene<'a> {
    pub(crate) program: &'a Path,
    pub(crate) folder: &'a Path,
    pub(crate) seed: u64,
}

impl Scene<'_> {
    /// Clients work while the fault strikes; then everything is counted. Gives how often it struck, too.
    fn play(
        &self,
        ground: &Ground,
        name: &str,
        strike: impl FnOnce(&Arena, &Journal, &mut Random) -> anyhow::Result<u64>,
    ) -> anyhow::Result<(u64, Findings)> {
        let arena = Arena::open(ground, name, self.program, self.folder, self.seed)?;
        let journal = Journal::begin(arena.folder.join("journal"))?;
        let mut random = Random::new(self.seed, 5_000);
        let traffic = Traffic::new(&arena, &journal, self.seed);
        let struck = traffic.during(CLIENTS, || strike(&arena, &journal, &mut random))?;
        let mut found = audit(&journal, &mut arena.register()?)?;
        // It tells more than another example.
        found.examples.splice(..0, arena.unexpected());
        Ok((struck, found))
    }

    pub(crate) fn kill_services(&self, ground: &Ground, times: u64) -> anyhow::Result<(u64, Findings)> {
        self.play(ground, "kill_services", |arena, _, random| {
            for time in 0..times {
                std::thread::sleep(random.milliseconds(WORK.0, WORK.1));
                arena.kill_service(usize::try_from(time)? % INSTANCES)?;
            }
            Ok(times)
        })
    }

    /// In turns the whole of PostgreSQL, its head, and a part of it.
    pub(crate) fn kill_database(&self, ground: &Ground, times: u64) -> anyhow::Result<(u64, Findings)> {
        self.play(ground, "kill_database", |_, _, random| {
            for time in 0..times {
                std::thread::sleep(random.milliseconds(WORK.0, WORK.1));
                match time % 3 {
                    0 => ground.kill()?,
                    1 => ground.kill_head()?,
                    _ => ground.kill_part(random)?,
                }
                ground.restart()?;
            }
            Ok(times)
        })
    }

    /// Cuts the connections between services and database until so many patients are acknowledged.
    pub(crate) fn cut_database(&self, ground: &Ground, patients: u64) -> anyhow::Result<(u64, Findings)> {
        self.play(ground, "cut_database", |arena, journal, _| {
            arena.database_proxy.cut_every(DATABASE_CUTS.0, DATABASE_CUTS.1);
            wait_for(journal, patients);
            arena.database_proxy.cut_every(0, 0);
            Ok(arena.database_proxy.count())
        })
    }

    /// Drops every packet between services and database for a while, which may be longer than a connection bears.
    pub(crate) fn drop_packets(&self, ground: &Ground, times: u64) -> anyhow::Result<(u64, Findings)> {
        self.play(ground, "drop_packets", |arena, _, random| {
            for _ in 0..times {
                std::thread::sleep(random.milliseconds(WORK.0, WORK.1));
                let dropping = Dropping::to(arena.database_proxy.address.ip())?;
                std::thread::sleep(random.milliseconds(DROPPED.0, DROPPED.1));
                drop(dropping);
            }
            Ok(times)
        })
    }

    /// Cuts what the services answer until so many patients are acknowledged.
    pub(crate) fn cut_answers(&self, ground: &Ground, patients: u64) -> anyhow::Result<(u64, Findings)> {
        self.play(ground, "cut_answers", |arena, journal, _| {
            arena.cut_answers(ANSWER_CUTS);
            wait_for(journal, patients);
            arena.cut_answers(0);
            Ok(arena.answers_cut())
        })
    }

    pub(crate) fn race(&self, ground: &Ground, rounds: u64) -> anyhow::Result<(u64, Findings)> {
        let arena = Arena::open(ground, "races", self.program, self.folder, self.seed)?;
        let journal = Journal::begin(arena.folder.join("journal"))?;
        let mut found = races::for_one_key(&arena, &journal, rounds)?;
        found += audit(&journal, &mut arena.register()?)?;
        Ok((rounds, found))
    }

    pub(crate) fn revoke(&self, ground: &Ground, times: u64) -> anyhow::Result<(u64, Findings)> {
        let arena = Arena::open(ground, "revocations", self.program, self.folder, self.seed)?;
        let mut found = races::of_revocation(&arena, self.seed, times)?;
        let stored = arena.count()?;
        if stored != found.acknowledged {
            found.phantom += stored.abs_diff(found.acknowledged);
            found.complain(format!("{stored} patients are there, {} were acknowledged", found.acknowledged));
        }
        Ok((times, found))
    }

    /// Cuts the power under PostgreSQL.
    pub(crate) fn cut_power(&self, times: u64) -> anyhow::Result<(u64, Findings)> {
        let disk = Disk::make(&self.folder.join("power"))?;
        let ground = Ground::prepare(disk.path(), Durability::Full)?;
        // Ends before its disk.
        self.play(&ground, "power_cuts", |_, _, random| {
            for _ in 0..times {
                std::thread::sleep(random.milliseconds(WORK.0, WORK.1));
                disk.cut_power()?;
                ground.restart()?;
            }
            Ok(times)
        })
    }

    /// Fills the disk under PostgreSQL, which may end over it, and makes room again.
    pub(crate) fn fill_disk(&self, times: u64) -> anyhow::Result<(u64, Findings)> {
        let disk = Disk::make(&self.folder.join("full"))?;
        let ground = Ground::prepare(disk.path(), Durability::Full)?;
        // Ends before its disk.
        self.play(&ground, "full_disk", |_, _, random| {
            for _ in 0..times {
                std::thread::sleep(random.milliseconds(WORK.0, WORK.1));
                disk.fill()?;
                std::thread::sleep(random.milliseconds(FULL.0, FULL.1));
                disk.empty()?;
                ground.restart()?;
            }
            Ok(times)
        })
    }

    /// Without durability a kill of PostgreSQL must be seen to lose something.
    pub(crate) fn control_kill(&self) -> anyhow::Result<Findings> {
        let ground = Ground::prepare(&self.folder.join("control-kill"), Durability::None)?;
        for time in 0..CONTROL_TRIES {
            let (_, found) = self.play(&ground, &format!("control_kill_{time}"), |_, _, random| {
                std::thread::sleep(random.milliseconds(200, 400));
                ground.kill()?;
                ground.restart()?;
                Ok(1)
            })?;
            if found.lost > 0 {
                return Ok(found);
            }
        }
        Ok(Findings::default())
    }

    /// Without durability a power cut must be seen to lose something; the whole database is something, too.
    pub(crate) fn control_power(&self) -> anyhow::Result<Findings> {
        for time in 0..CONTROL_TRIES {
            let name = format!("control_power_{time}");
            let disk = Disk::make(&self.folder.join(&name))?;
            let ground = Ground::prepare(disk.path(), Durability::None)?;
            let mut everything = None;
            let played = self.play(&ground, &name, |_, journal, _| {
                std::thread::sleep(Duration::from_millis(500));
                disk.cut_power()?;
                if let Err(error) = ground.restart() {
                    everything = Some((journal.acknowledged(), error));
                    anyhow::bail!("the database is lost");
                }
                Ok(1)
            });
            match (played, everything) {
                (_, Some((lost, error))) => {
                    let examples = vec![format!("PostgreSQL does not start: {error}")];
                    return Ok(Findings { acknowledged: lost, lost, examples, ..Findings::default() });
                }
                (Ok((_, found)), None) if found.lost > 0 => return Ok(found),
                (Ok(_), None) => {}
                (Err(error), None) => return Err(error),
            }
        }
        Ok(Findings::default())
    }
}

fn wait_for(journal: &Journal, patients: u64) {
    while journal.acknowledged() < patients {
        std::thread::sleep(Duration::from_millis(20));
    }
}
