//! The primary stops answering and its standby is promoted. The standby is synchronous, so it holds everything that was
//! acknowledged; the services have one address for both servers and look for the one that accepts writes.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use diesel::prelude::*;
use intake_infra::{DatabaseUrl, Durability, Prepared, SERVICE_ROLE};
use intake_test_support::WithCount;

use crate::audit::Findings;
use crate::hangs::{RECOVERY, around_deadline};
use crate::postgres_server::{OWNER, PostgresServer};
use crate::run::{Refusals, Run};
use crate::test_bed::TestBed;

/// Time that a standby on the same machine may take to catch up.
const CATCH_UP: Duration = Duration::from_secs(120);
/// Time for which the old primary is awake before it is fenced off.
const AWAKE: (u64, u64) = (100, 800);

impl Run<'_> {
    /// Uses two new servers each time, because a standby can be promoted once.
    pub(crate) fn promote_standby(&self, times: u64) -> anyhow::Result<(u64, Findings)> {
        let mut found = Findings::default();
        for time in 0..times {
            found += self.promote_once(&format!("promotion_{time}"))?;
        }
        Ok((times, found))
    }

    fn promote_once(&self, name: &str) -> anyhow::Result<Findings> {
        let folder = self.folder.join(format!("{name}_servers"));
        let primary = PostgresServer::prepare(&folder.join("primary"), Durability::Full)?;
        primary.database(name)?;
        let standby = standby_of(&primary, &folder.join("standby"))?;
        let urls = either(&primary, &standby, name)?;
        let bed = TestBed::open_at(&primary, &self.impatient_plan(name), urls)?;
        let (_, found) = self.run_fault_in(&bed, Refusals::Expected, |fault| {
            fault.rest();
            let frozen = primary.freeze()?;
            // A fail-over takes a while, sometimes longer than requests wait.
            let is_quick = fault.random.one_in(2);
            std::thread::sleep(around_deadline(&mut fault.random, is_quick));
            standby.administer("SELECT pg_promote()")?;
            let promoted = Instant::now();
            fault.must_serve(promoted, RECOVERY, "a standby was promoted");
            // The old primary does not know yet that it was replaced. It can commit nothing, but it can be read.
            fault.bed.is_stale_until(Instant::now() + CATCH_UP);
            drop(frozen);
            std::thread::sleep(fault.random.milliseconds(AWAKE.0, AWAKE.1));
            primary.kill()?;
            fault.bed.is_stale_until(Instant::now());
            fault.rest();
            fault.must_serve(Instant::now(), RECOVERY, "the old primary was stopped");
            Ok(1)
        })?;
        Ok(found)
    }
}

/// Makes a synchronous standby of a server, as an operator would.
fn standby_of(primary: &PostgresServer, folder: &Path) -> anyhow::Result<PostgresServer> {
    let data = folder.join("postgres/data");
    let account = fs::metadata(primary.data_folder())?;
    let parent = data.parent().context("a folder around the data")?;
    fs::create_dir_all(parent)?;
    chown(parent, Some(account.uid()), Some(account.gid()))?;
    let mut backup = primary.command("pg_basebackup")?;
    backup.arg("--pgdata").arg(&data).args(["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast"]);
    let output = backup.output().context("pg_basebackup does not run")?;
    anyhow::ensure!(output.status.success(), "pg_basebackup: {}", String::from_utf8_lossy(&output.stderr).trim());
    let standby = PostgresServer::prepare(folder, Durability::Full)?;
    // After the backup, so that the standby does not wait for another one when it is promoted.
    primary.administer("ALTER SYSTEM SET synchronous_standby_names = '*'")?;
    primary.administer("SELECT pg_reload_conf()")?;
    let is_synchronous = "SELECT count(*) AS count FROM pg_stat_replication WHERE sync_state = 'sync'";
    let until = Instant::now() + CATCH_UP;
    while diesel::sql_query(is_synchronous).get_result::<WithCount>(&mut primary.connect()?)?.count == 0 {
        anyhow::ensure!(Instant::now() < until, "the standby does not follow");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(standby)
}

/// The addresses that lead to whichever of the two servers accepts writes.
fn either(primary: &PostgresServer, standby: &PostgresServer, database: &str) -> anyhow::Result<Prepared> {
    let hosts = format!("{},{}", primary.socket_folder().display(), standby.socket_folder().display());
    let address = |role: &str| -> anyhow::Result<DatabaseUrl> {
        let url = format!("host='{hosts}' user={role} dbname={database} target_session_attrs=read-write");
        url.parse().map_err(|_| anyhow!("{url} is no address of a database"))
    };
    Ok(Prepared { owner: address(OWNER)?, service: address(SERVICE_ROLE)? })
}
