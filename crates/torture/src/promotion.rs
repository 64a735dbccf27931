//! The primary stops answering and its standby is promoted. The standby is synchronous, so it holds everything that was
//! acknowledged; the services have one address for both servers and look for the one that accepts writes.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use diesel::prelude::*;
use intake_infra::{DatabaseUrl, Durability, Prepared, SERVICE_ROLE};
use intake_test_support::WithCount;

use crate::arena::Arena;
use crate::audit::Findings;
use crate::ground::Ground;
use crate::hangs::{RECOVERY, around_deadline};
use crate::scene::{Refusals, Scene};

/// The owner of the schema in a private PostgreSQL.
const OWNER: &str = "intake_owner";
/// How long a standby on the same machine may take to catch up.
const CATCH_UP: Duration = Duration::from_secs(120);
/// How long the old primary is awake before it is fenced off.
const AWAKE: (u64, u64) = (100, 800);

impl Scene<'_> {
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
        let primary = Ground::prepare(&folder.join("primary"), Durability::Full)?;
        primary.database(name)?;
        let standby = standby_of(&primary, &folder.join("standby"))?;
        let urls = either(&primary, &standby, name)?;
        let arena = Arena::open_at(&primary, &self.impatient_plan(name), urls)?;
        let (_, found) = self.play_in(&arena, Refusals::Expected, |act| {
            act.rest();
            let frozen = primary.freeze()?;
            // A fail-over takes a while, sometimes longer than requests wait.
            let is_quick = act.random.one_in(2);
            std::thread::sleep(around_deadline(&mut act.random, is_quick));
            standby.administer("SELECT pg_promote()")?;
            let promoted = Instant::now();
            act.must_serve(promoted, RECOVERY, "a standby was promoted");
            // The old primary does not know yet that it was replaced.
            drop(frozen);
            std::thread::sleep(act.random.milliseconds(AWAKE.0, AWAKE.1));
            primary.kill()?;
            act.rest();
            act.must_serve(Instant::now(), RECOVERY, "the old primary was stopped");
            Ok(1)
        })?;
        Ok(found)
    }
}

/// Makes a synchronous standby of a server, as an operator would.
fn standby_of(primary: &Ground, folder: &Path) -> anyhow::Result<Ground> {
    let data = folder.join("postgres/data");
    let account = fs::metadata(primary.data_folder())?;
    let parent = data.parent().context("a folder around the data")?;
    fs::create_dir_all(parent)?;
    chown(parent, Some(account.uid()), Some(account.gid()))?;
    let mut backup = Command::new(program(primary, "pg_basebackup")?);
    backup.arg("--host").arg(primary.socket_folder()).args(["--username", OWNER, "--pgdata"]).arg(&data);
    backup.args(["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast"]).current_dir(parent);
    if rustix::process::geteuid().is_root() {
        backup.uid(account.uid()).gid(account.gid());
    }
    let output = backup.output().context("pg_basebackup does not run")?;
    anyhow::ensure!(output.status.success(), "pg_basebackup: {}", String::from_utf8_lossy(&output.stderr).trim());
    let standby = Ground::prepare(folder, Durability::Full)?;
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
fn either(primary: &Ground, standby: &Ground, database: &str) -> anyhow::Result<Prepared> {
    let hosts = format!("{},{}", primary.socket_folder().display(), standby.socket_folder().display());
    let address = |role: &str| -> anyhow::Result<DatabaseUrl> {
        let url = format!("host='{hosts}' user={role} dbname={database} target_session_attrs=read-write");
        url.parse().map_err(|_| anyhow!("{url} is no address of a database"))
    };
    Ok(Prepared { owner: address(OWNER)?, service: address(SERVICE_ROLE)? })
}

/// One of PostgreSQL's programs, beside the running server.
fn program(ground: &Ground, name: &str) -> anyhow::Result<PathBuf> {
    let options = fs::read_to_string(ground.data_folder().join("postmaster.opts"))?;
    let server = options.split_whitespace().next().context("postmaster.opts is empty")?;
    Ok(Path::new(server).with_file_name(name))
}
