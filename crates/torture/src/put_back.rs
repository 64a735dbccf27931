//! An earlier state of PostgreSQL's files, which comes in the place of the present one: a base backup that is recovered
//! up to a moment, or a plain copy of a stopped server's files.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::operations::PAUSE;
use crate::postgres_server::PostgresServer;
use crate::random::Random;

/// Time that the recovery may take.
const RECOVERY: Duration = Duration::from_secs(120);
/// Offsets of the database's clock, in the format of libfaketime: sessions and the marks of exports outlive them.
const OFFSETS: [&str; 4] = ["-10m", "-2h", "+2h", "+11h"];

/// An earlier state of a server's files.
pub(crate) enum Backup {
    /// A base backup. The log since is all there.
    Base(PathBuf),
    /// A copy, which is made at the moment, under a clock that had jumped before and jumps again after.
    Files(PathBuf, Clock),
}

impl Backup {
    /// Begins a backup: with a clock, of the other kind.
    pub(crate) fn begin(server: &PostgresServer, clock: Option<Clock>) -> anyhow::Result<Self> {
        let folder = server.data_folder().with_file_name("backup");
        if let Some(clock) = clock {
            return Ok(Self::Files(folder, clock));
        }
        server.administer("ALTER SYSTEM SET wal_keep_size = '4GB'")?;
        server.administer("SELECT pg_reload_conf()")?;
        let account = fs::metadata(server.data_folder())?;
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        chown(&folder, Some(account.uid()), Some(account.gid()))?;
        let mut backup = server.command("pg_basebackup")?;
        backup.arg("--pgdata").arg(&folder).args(["--wal-method=stream", "--checkpoint=fast"]);
        succeed(&mut backup)?;
        Ok(Self::Base(folder))
    }

    /// Sets the clock to another time, if it can jump.
    pub(crate) fn jump(&self, random: &mut Random) -> anyhow::Result<()> {
        let Self::Files(_, clock) = self else { return Ok(()) };
        let choice = usize::try_from(random.below(OFFSETS.len() as u64))?;
        OFFSETS.get(choice).map_or(Ok(()), |offset| clock.set(offset))
    }

    /// This is the moment to which the files are put back.
    pub(crate) fn mark_moment(&self, server: &PostgresServer) -> anyhow::Result<()> {
        match self {
            Self::Base(_) => server.administer("SELECT pg_create_restore_point('moment')"),
            Self::Files(folder, _) => {
                server.stop()?;
                succeed(Command::new("cp").arg("-a").arg(server.data_folder()).arg(folder))?;
                server.restart()
            }
        }
    }

    /// Puts the backup in the place of the server's files.
    pub(crate) fn put_back(&self, server: &PostgresServer) -> anyhow::Result<()> {
        let data = server.data_folder();
        let lost = data.with_file_name("lost");
        let (Self::Base(folder) | Self::Files(folder, _)) = self;
        server.kill()?;
        fs::rename(&data, &lost)?;
        fs::rename(folder, &data)?;
        if matches!(self, Self::Base(_)) {
            let command = format!("restore_command = 'cp {}/pg_wal/%f %p'", lost.display());
            let target = "recovery_target_name = 'moment'\nrecovery_target_action = 'promote'";
            fs::write(data.join("postgresql.auto.conf"), format!("{command}\n{target}\n"))?;
            fs::write(data.join("recovery.signal"), "")?;
        }
        server.restart()?;
        let until = Instant::now() + RECOVERY;
        // Written to only when the recovery is over.
        while server.administer("CREATE TABLE IF NOT EXISTS recovered ()").is_err() {
            anyhow::ensure!(Instant::now() < until, "the recovery does not end:\n{}", server.end_of_log());
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output()?;
    anyhow::ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}
