//! The faults that end something: killed processes, cut connections, dropped packets, full disks, power cuts.

use std::time::Duration;

use intake_infra::Durability;

use crate::arena::{Arena, INSTANCES};
use crate::audit::{Findings, audit};
use crate::disk::Disk;
use crate::ground::Ground;
use crate::journal::Journal;
use crate::races;
use crate::route::Dropping;
use crate::scene::Scene;

/// How long packets are dropped, in milliseconds.
const DROPPED: (u64, u64) = (200, 6_000);
/// How long a disk stays full, in milliseconds.
const FULL: (u64, u64) = (300, 1_500);
/// Bytes between two cuts, to and from the database: a few batches, and a few answers.
const DATABASE_CUTS: (u64, u64) = (150_000, 8_000);
/// Bytes of answers between two cuts: a few answers.
const ANSWER_CUTS: u64 = 6_000;
/// In this many tries a control must lose something.
pub(crate) const CONTROL_TRIES: u64 = 10;

impl Scene<'_> {
    pub(crate) fn kill_services(&self, ground: &Ground, times: u64) -> anyhow::Result<(u64, Findings)> {
        self.play(ground, "kill_services", |act| {
            for time in 0..times {
                act.rest();
                act.arena.kill_service(usize::try_from(time)? % INSTANCES)?;
            }
            Ok(times)
        })
    }

    /// Kills in turns all of PostgreSQL, its parent process, and one child process.
    pub(crate) fn kill_database(&self, ground: &Ground, times: u64) -> anyhow::Result<(u64, Findings)> {
        self.play(ground, "kill_database", |act| {
            for time in 0..times {
                act.rest();
                match time % 3 {
                    0 => ground.kill()?,
                    1 => ground.kill_parent()?,
                    _ => ground.kill_child(&mut act.random)?,
                }
                ground.restart()?;
            }
            Ok(times)
        })
    }

    /// Cuts the connections between services and database until this many patients are acknowledged.
    pub(crate) fn cut_database(&self, ground: &Ground, patients: u64) -> anyhow::Result<(u64, Findings)> {
        self.play(ground, "cut_database", |act| {
            act.arena.database_proxy.cut_every(DATABASE_CUTS.0, DATABASE_CUTS.1);
            wait_for(act.journal, patients);
            act.arena.database_proxy.cut_every(0, 0);
            Ok(act.arena.database_proxy.count())
        })
    }

    /// Drops every packet between services and database for a while, which may be longer than connections last.
    pub(crate) fn drop_packets(&self, ground: &Ground, times: u64) -> anyhow::Result<(u64, Findings)> {
        self.play(ground, "drop_packets", |act| {
            for _ in 0..times {
                act.rest();
                let dropping = Dropping::to(act.arena.database_proxy.address.ip())?;
                std::thread::sleep(act.random.milliseconds(DROPPED.0, DROPPED.1));
                drop(dropping);
            }
            Ok(times)
        })
    }

    /// Cuts the answers of the services until this many patients are acknowledged.
    pub(crate) fn cut_answers(&self, ground: &Ground, patients: u64) -> anyhow::Result<(u64, Findings)> {
        self.play(ground, "cut_answers", |act| {
            act.arena.cut_answers(ANSWER_CUTS);
            wait_for(act.journal, patients);
            act.arena.cut_answers(0);
            Ok(act.arena.answers_cut())
        })
    }

    pub(crate) fn race(&self, ground: &Ground, rounds: u64) -> anyhow::Result<(u64, Findings)> {
        let arena = Arena::open(ground, &self.plan("races", &[]))?;
        let journal = Journal::begin(arena.folder.join("journal"))?;
        let mut found = races::for_one_key(&arena, &journal, rounds)?;
        found += audit(&journal, &mut arena.register()?)?;
        Ok((rounds, found))
    }

    pub(crate) fn revoke(&self, ground: &Ground, times: u64) -> anyhow::Result<(u64, Findings)> {
        let arena = Arena::open(ground, &self.plan("revocations", &[]))?;
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
        self.play(&ground, "power_cuts", |act| {
            for _ in 0..times {
                act.rest();
                disk.cut_power()?;
                ground.restart()?;
            }
            Ok(times)
        })
    }

    /// Fills the disk under PostgreSQL, which may end because of it, and frees it again.
    pub(crate) fn fill_disk(&self, times: u64) -> anyhow::Result<(u64, Findings)> {
        let disk = Disk::make(&self.folder.join("full"))?;
        let ground = Ground::prepare(disk.path(), Durability::Full)?;
        // Ends before its disk.
        self.play(&ground, "full_disk", |act| {
            for _ in 0..times {
                act.rest();
                disk.fill()?;
                std::thread::sleep(act.random.milliseconds(FULL.0, FULL.1));
                disk.empty()?;
                ground.restart()?;
            }
            Ok(times)
        })
    }

    /// Without durability, killing PostgreSQL must lose something.
    pub(crate) fn control_kill(&self) -> anyhow::Result<Findings> {
        let ground = Ground::prepare(&self.folder.join("control-kill"), Durability::None)?;
        for time in 0..CONTROL_TRIES {
            let (_, found) = self.play(&ground, &format!("control_kill_{time}"), |act| {
                std::thread::sleep(act.random.milliseconds(200, 400));
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

    /// Without durability, a power cut must lose something, which may be the whole database.
    pub(crate) fn control_power(&self) -> anyhow::Result<Findings> {
        for time in 0..CONTROL_TRIES {
            let name = format!("control_power_{time}");
            let disk = Disk::make(&self.folder.join(&name))?;
            let ground = Ground::prepare(disk.path(), Durability::None)?;
            let mut everything = None;
            let played = self.play(&ground, &name, |act| {
                std::thread::sleep(Duration::from_millis(500));
                disk.cut_power()?;
                if let Err(error) = ground.restart() {
                    everything = Some((act.journal.acknowledged(), error));
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
