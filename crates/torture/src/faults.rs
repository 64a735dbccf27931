//! The faults that end something: killed processes, cut connections, dropped packets, full disks, power cuts.

use std::time::Duration;

use intake_infra::Durability;

use crate::audit::{Findings, audit};
use crate::disk::Disk;
use crate::journal::Journal;
use crate::postgres_server::PostgresServer;
use crate::races;
use crate::route::Dropping;
use crate::run::Run;
use crate::test_bed::{INSTANCES, TestBed};

/// Time for which packets are dropped, in milliseconds.
const DROPPED: (u64, u64) = (200, 6_000);
/// Time for which a disk stays full, in milliseconds.
const FULL: (u64, u64) = (300, 1_500);
/// Bytes between two cuts, to and from the database: a few batches, and a few answers.
const DATABASE_CUTS: (u64, u64) = (150_000, 8_000);
/// Bytes of answers between two cuts: a few answers.
const ANSWER_CUTS: u64 = 6_000;
/// Number of patients that a control lets be acknowledged before it loses some.
const TO_LOSE: u64 = 20;
/// In this many tries a control must lose something.
pub(crate) const CONTROL_TRIES: u64 = 10;

impl Run<'_> {
    pub(crate) fn kill_services(&self, server: &PostgresServer, times: u64) -> anyhow::Result<(u64, Findings)> {
        self.run_fault(server, "kill_services", |fault| {
            for time in 0..times {
                fault.rest();
                fault.bed.kill_service(usize::try_from(time)? % INSTANCES)?;
            }
            Ok(times)
        })
    }

    /// Kills in turns all of PostgreSQL, its parent process, and one child process.
    pub(crate) fn kill_database(&self, server: &PostgresServer, times: u64) -> anyhow::Result<(u64, Findings)> {
        self.run_fault(server, "kill_database", |fault| {
            for time in 0..times {
                fault.rest();
                match time % 3 {
                    0 => server.kill()?,
                    1 => server.kill_parent()?,
                    _ => server.kill_child(&mut fault.random)?,
                }
                server.restart()?;
            }
            Ok(times)
        })
    }

    /// Cuts the connections between services and database until this many patients are acknowledged.
    pub(crate) fn cut_database(&self, server: &PostgresServer, patients: u64) -> anyhow::Result<(u64, Findings)> {
        self.run_fault(server, "cut_database", |fault| {
            fault.bed.database_proxy.cut_every(DATABASE_CUTS.0, DATABASE_CUTS.1);
            wait_for(fault.journal, patients);
            fault.bed.database_proxy.cut_every(0, 0);
            Ok(fault.bed.database_proxy.count())
        })
    }

    /// Drops every packet between services and database for a while, which may be longer than connections last.
    pub(crate) fn drop_packets(&self, server: &PostgresServer, times: u64) -> anyhow::Result<(u64, Findings)> {
        self.run_fault(server, "drop_packets", |fault| {
            for _ in 0..times {
                fault.rest();
                let dropping = Dropping::to(fault.bed.database_proxy.address.ip())?;
                std::thread::sleep(fault.random.milliseconds(DROPPED.0, DROPPED.1));
                drop(dropping);
            }
            Ok(times)
        })
    }

    /// Cuts the answers of the services until this many patients are acknowledged.
    pub(crate) fn cut_answers(&self, server: &PostgresServer, patients: u64) -> anyhow::Result<(u64, Findings)> {
        self.run_fault(server, "cut_answers", |fault| {
            fault.bed.cut_answers(ANSWER_CUTS);
            wait_for(fault.journal, patients);
            fault.bed.cut_answers(0);
            Ok(fault.bed.answers_cut())
        })
    }

    pub(crate) fn race(&self, server: &PostgresServer, rounds: u64) -> anyhow::Result<(u64, Findings)> {
        let bed = TestBed::open(server, &self.plan("races", &[]))?;
        let journal = Journal::begin(bed.folder.join("journal"))?;
        let mut found = races::for_one_key(&bed, &journal, rounds)?;
        found += audit(&journal, &mut bed.register()?)?;
        Ok((rounds, found))
    }

    pub(crate) fn revoke(&self, server: &PostgresServer, times: u64) -> anyhow::Result<(u64, Findings)> {
        let bed = TestBed::open(server, &self.plan("revocations", &[]))?;
        let mut found = races::of_revocation(&bed, self.seed, times)?;
        let stored = bed.count()?;
        if stored != found.acknowledged {
            found.phantom += stored.abs_diff(found.acknowledged);
            found.complain(format!("{stored} patients are there, {} were acknowledged", found.acknowledged));
        }
        Ok((times, found))
    }

    /// Cuts the power under PostgreSQL.
    pub(crate) fn cut_power(&self, times: u64) -> anyhow::Result<(u64, Findings)> {
        let disk = Disk::make(&self.folder.join("power"))?;
        let server = PostgresServer::prepare(disk.path(), Durability::Full)?;
        // Ends before its disk.
        self.run_fault(&server, "power_cuts", |fault| {
            for _ in 0..times {
                fault.rest();
                disk.cut_power()?;
                server.restart()?;
            }
            Ok(times)
        })
    }

    /// Fills the disk under PostgreSQL, which may end because of it, and frees it again.
    pub(crate) fn fill_disk(&self, times: u64) -> anyhow::Result<(u64, Findings)> {
        let disk = Disk::make(&self.folder.join("full"))?;
        let server = PostgresServer::prepare(disk.path(), Durability::Full)?;
        // Ends before its disk.
        self.run_fault(&server, "full_disk", |fault| {
            for _ in 0..times {
                fault.rest();
                disk.fill()?;
                std::thread::sleep(fault.random.milliseconds(FULL.0, FULL.1));
                disk.empty()?;
                server.restart()?;
            }
            Ok(times)
        })
    }

    /// Without durability, killing PostgreSQL must lose something.
    pub(crate) fn control_kill(&self) -> anyhow::Result<Findings> {
        let server = PostgresServer::prepare(&self.folder.join("control-kill"), Durability::None)?;
        for time in 0..CONTROL_TRIES {
            let (_, found) = self.run_fault(&server, &format!("control_kill_{time}"), |fault| {
                wait_for(fault.journal, TO_LOSE);
                server.kill()?;
                server.restart()?;
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
            let server = PostgresServer::prepare(disk.path(), Durability::None)?;
            let mut everything = None;
            let played = self.run_fault(&server, &name, |fault| {
                wait_for(fault.journal, TO_LOSE);
                disk.cut_power()?;
                if let Err(error) = server.restart() {
                    everything = Some((fault.journal.acknowledged(), error));
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
