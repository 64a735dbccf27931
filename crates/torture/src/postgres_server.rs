//! A private PostgreSQL, and the faults that can happen to it: killed as a whole or in part, frozen, restarted.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;
use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_infra::embedded::{EmbeddedPostgres, Settings};
use intake_infra::{Durability, Prepared, prepare};
use intake_test_support::processes::{Frozen, children, kill, send};

use crate::clock::Clock;
use crate::random::Random;

/// The owner of the schema in a private PostgreSQL.
pub(crate) const OWNER: &str = "intake_owner";
/// Time that all processes of a killed PostgreSQL may take to end.
const GONE: Duration = Duration::from_secs(60);
/// Number of lines of its log that say what became of it.
const LINES: usize = 20;

/// A private PostgreSQL.
pub(crate) struct PostgresServer {
    folder: PathBuf,
    postgres: EmbeddedPostgres,
}

impl PostgresServer {
    /// Starts the one in this folder, which is created if it does not exist.
    pub(crate) fn prepare(folder: &Path, durability: Durability) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)?;
        Self::start(folder, durability, None)
    }

    fn start(folder: &Path, durability: Durability, programs: Option<PathBuf>) -> anyhow::Result<Self> {
        let (folder, user) = (folder.join("postgres"), std::process::id());
        let postgres = EmbeddedPostgres::start(&Settings { folder: folder.clone(), durability, programs, user })?;
        Ok(Self { folder, postgres })
    }

    /// Starts the one in this folder, with this clock.
    pub(crate) fn with_clock(folder: &Path, clock: &Clock) -> anyhow::Result<Self> {
        let server = Self::prepare(folder, Durability::Full)?;
        let programs = folder.join("programs");
        std::fs::create_dir_all(&programs)?;
        let variables = clock.variables().map(|(name, value)| format!("{name}='{value}' ")).concat();
        for (program, variables) in [("postgres", variables.as_str()), ("initdb", "")] {
            let real = server.program(program)?;
            let path = programs.join(program);
            std::fs::write(&path, format!("#!/bin/sh\n{variables}exec '{}' \"$@\"\n", real.display()))?;
            std::fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        }
        server.stop()?;
        drop(server);
        Self::start(folder, Durability::Full, Some(programs))
    }

    /// Makes a database on it.
    pub(crate) fn database(&self, name: &str) -> anyhow::Result<Prepared> {
        Ok(prepare(&self.postgres, name)?)
    }

    /// Runs a statement that concerns the whole server.
    pub(crate) fn administer(&self, sql: &str) -> anyhow::Result<()> {
        Ok(self.connect()?.batch_execute(sql)?)
    }

    /// Connects as the owner of the schema.
    pub(crate) fn connect(&self) -> anyhow::Result<PgConnection> {
        Ok(PgConnection::establish(self.postgres.owner_url("postgres").expose())?)
    }

    /// Ends every session of a role, as an operator would.
    pub(crate) fn end_sessions(&self, role: &str) -> anyhow::Result<()> {
        self.administer(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'"))
    }

    pub(crate) fn socket_folder(&self) -> PathBuf {
        self.folder.join("socket")
    }

    pub(crate) fn data_folder(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// One of PostgreSQL's own programs, for this server, as its account.
    pub(crate) fn command(&self, name: &str) -> anyhow::Result<Command> {
        let mut command = Command::new(self.program(name)?);
        command.current_dir(&self.folder).arg("--host").arg(self.socket_folder()).args(["--username", OWNER]);
        if rustix::process::geteuid().is_root() {
            let account = std::fs::metadata(self.data_folder())?;
            command.uid(account.uid()).gid(account.gid());
        }
        Ok(command)
    }

    fn program(&self, name: &str) -> anyhow::Result<PathBuf> {
        let options = std::fs::read_to_string(self.data_folder().join("postmaster.opts"))?;
        let server = options.split_whitespace().next().context("postmaster.opts is empty")?;
        Ok(Path::new(server).with_file_name(name))
    }

    /// Stops the server, which ends all sessions.
    pub(crate) fn stop(&self) -> anyhow::Result<()> {
        let server = self.server()?;
        send("INT", &server.to_string());
        wait_until_gone(&[server])
    }

    /// Kills all processes of the server. They are frozen first: a child that started in between would wait for ever
    /// for a lock of one that was killed, and keep the server from starting again.
    pub(crate) fn kill(&self) -> anyhow::Result<()> {
        wait_until_gone(&self.freeze()?.kill())
    }

    /// Kills the parent process: its children notice and end by themselves.
    pub(crate) fn kill_parent(&self) -> anyhow::Result<()> {
        let server = self.server()?;
        let family = children(server)?;
        kill(server);
        wait_until_gone(&family)
    }

    /// Kills one child process: the parent then ends all others and starts them again.
    pub(crate) fn kill_child(&self, random: &mut Random) -> anyhow::Result<()> {
        let family = children(self.server()?)?;
        let choice = usize::try_from(random.below(family.len() as u64))?;
        family.get(choice).copied().into_iter().for_each(kill);
        Ok(())
    }

    /// Freezes all processes of the server: connections are accepted, and nothing is answered.
    pub(crate) fn freeze(&self) -> anyhow::Result<Frozen> {
        Ok(Frozen::family(self.server()?)?)
    }

    /// Starts the server again, unless it is running.
    pub(crate) fn restart(&self) -> anyhow::Result<()> {
        Ok(self.postgres.ensure_running()?)
    }

    /// The end of the server's own log, which says why it does not come back. What it says to those
    /// who connect in the meantime is left out.
    pub(crate) fn end_of_log(&self) -> String {
        let log = std::fs::read(self.folder.join("postgres.log")).unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = text.lines().filter(|line| !line.contains("FATAL:  the database system is ")).collect();
        lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().join("\n")
    }

    fn server(&self) -> anyhow::Result<u32> {
        let file = std::fs::read_to_string(self.data_folder().join("postmaster.pid"))?;
        Ok(file.lines().next().context("the pid file is empty")?.trim().parse()?)
    }
}

fn wait_until_gone(processes: &[u32]) -> anyhow::Result<()> {
    let lives = |process: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // A process that has ended is listed as a zombie until its parent has noticed.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    let until = Instant::now() + GONE;
    while processes.iter().any(lives) {
        anyhow::ensure!(Instant::now() < until, "PostgreSQL does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
