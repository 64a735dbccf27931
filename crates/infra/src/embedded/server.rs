//! The PostgreSQL server of one data folder: created, started and stopped. Everything here happens under the folder's
//! start lock.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use diesel::Connection;
use diesel::pg::PgConnection;
use rustix::process::{Pid, Signal, kill_process};

use super::account::{Account, path_hash};
use super::error::EmbeddedError;
use super::programs::Programs;
use super::server_log::ServerLog;
use super::server_process;
use crate::database::connecting::durability::Durability;
use crate::database::connecting::url::DatabaseUrl;

/// The role that owns the schema: used to migrate, never to serve.
const OWNER: &str = "intake_owner";
/// A server that crashed replays its log first, which may take a while on a slow disk.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// A fast shutdown writes a checkpoint.
const FAST_STOP_TIMEOUT: Duration = Duration::from_secs(20);
/// An immediate one kills what has not ended after five seconds.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
/// A process that writes to a folder which is being deleted soon fails.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);
/// The longest path of a unix socket that every system accepts.
const SOCKET_PATH_MAX: usize = 103;
/// A pid that no process has.
const NO_PROCESS: &str = "2147483647";

/// Which database, and for which account.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Folder of the cluster, which may not exist yet.
    pub folder: PathBuf,
    /// Failures that a commit must survive.
    pub durability: Durability,
    /// The folder of PostgreSQL's programs; none: look in the usual places.
    pub programs: Option<PathBuf>,
    /// The process that uses the database until it ends: usually our own.
    pub user: u32,
}

#[derive(Debug)]
pub(super) struct Server {
    folder: PathBuf,
    socket_folder: PathBuf,
    account: Account,
    durability: Durability,
    programs: Option<PathBuf>,
    /// The server, if this process started it.
    child: Option<Child>,
    log: ServerLog,
}

impl Server {
    pub(super) fn new(settings: &Settings) -> Result<Self, EmbeddedError> {
        let requested = std::path::absolute(&settings.folder)?;
        let account = Account::for_server(&requested)?;
        let folder = account.reachable(requested.clone());
        if folder != requested {
            tracing::info!(folder = %folder.display(), "the database is kept outside of the data folder, which the account it runs under cannot enter");
        }
        account.make_private_folder(&folder)?;
        // Without links, because a running server is recognised by this path.
        let folder = folder.canonicalize()?;
        let socket_folder = socket_folder(&folder);
        account.make_private_folder(&socket_folder)?;
        let (programs, durability, log) = (settings.programs.clone(), settings.durability, ServerLog::of(&folder));
        Ok(Self { folder, socket_folder, account, durability, programs, child: None, log })
    }

    pub(super) fn account(&self) -> Account {
        self.account
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn url(&self, role: &str, database: &str) -> DatabaseUrl {
        let url = DatabaseUrl::on_socket(&self.socket_folder.to_string_lossy(), role, database);
        url.with_durability(self.durability)
    }

    pub(super) fn owner_url(&self, database: &str) -> DatabaseUrl {
        self.url(OWNER, database)
    }

    /// Returns whether the server is running.
    pub(super) fn is_alive(&mut self) -> bool {
        if let Some(child) = &mut self.child
            && child.try_wait().is_ok_and(|status| status.is_some())
        {
            self.child = None;
        }
        self.process().is_some()
    }

    /// Starts the server unless it is running, and waits until it answers. The lock is that of the start.
    pub(super) fn ensure_running(&mut self, lock: &File) -> Result<(), EmbeddedError> {
        let until = Instant::now() + START_TIMEOUT;
        let programs = Programs::find(self.programs.as_deref(), made_by(&self.data()))?;
        if made_by(&self.data()).is_none() {
            self.make_data(&programs, lock)?;
        }
        let mut has_started = false;
        while Instant::now() < until {
            if self.is_alive() {
                if PgConnection::establish(self.owner_url("postgres").expose()).is_ok() {
                    return Ok(());
                }
            } else if self.child.is_none() {
                if has_started {
                    self.assert_worth_another_try()?;
                }
                self.start(&programs)?;
                has_started = true;
            }
            std::thread::sleep(POLL);
        }
        let (time, last) = (START_TIMEOUT.as_secs(), self.log.reason(self.account));
        Err(EmbeddedError::DoesNotStart(format!("no answer for {time} seconds; last in its log: {last}")))
    }

    /// Stops the server if it is running, and waits until it has ended.
    pub(super) fn stop(&mut self) -> Result<(), EmbeddedError> {
        // A fast shutdown: sessions end, everything is written. A server that recovers from the death of one of its
        // processes may never end by it, but by an immediate one, after which the next server recovers.
        for (signal, timeout) in [(Signal::INT, FAST_STOP_TIMEOUT), (Signal::QUIT, STOP_TIMEOUT - FAST_STOP_TIMEOUT)] {
            if let Some(process) = self.process() {
                self.account.act(|| {
                    let _ = kill_process(process, signal);
                    // A process that was stopped gets the signal only when it continues.
                    for stopped in server_process::children(process).into_iter().chain([process]) {
                        let _ = kill_process(stopped, Signal::CONT);
                    }
                    Ok(())
                })?;
            }
            let until = Instant::now() + timeout;
            while self.is_alive() && Instant::now() < until {
                std::thread::sleep(POLL);
            }
        }
        if self.is_alive() { Err(EmbeddedError::DoesNotStop) } else { Ok(()) }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Makes the data folder under another name first, so that an interrupted start leaves no unfinished one. If this
    /// process is killed, the guard ends the program that makes the data, which holds the lock until then.
    fn make_data(&self, programs: &Programs, lock: &File) -> Result<(), EmbeddedError> {
        let unfinished = self.folder.join("data.unfinished");
        self.account.act(|| remove_folder(&unfinished))?;
        let mut initdb = Command::new(programs.initdb());
        initdb.arg("--pgdata").arg(&unfinished).args(["--username", OWNER, "--auth", "trust", "--encoding", "UTF8"]);
        initdb.args(["--locale", "C", "--no-instructions"]);
        if self.durability == Durability::None {
            initdb.arg("--no-sync");
        }
        self.prepare(&mut initdb);
        let output = initdb.stdin(lock.try_clone()?).output()?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr);
            return Err(EmbeddedError::CannotMake(
                reason.trim().lines().last().unwrap_or("no reason given").to_owned(),
            ));
        }
        Ok(self.account.act(|| fs::rename(&unfinished, self.data()))?)
    }

    fn start(&mut self, programs: &Programs) -> Result<(), EmbeddedError> {
        let data = self.data();
        self.account.act(|| server_process::remove_empty_pid_file(&data))?;
        self.disown_foreign_process()?;
        let log = self.log.open(self.account)?;
        let mut server = Command::new(programs.server());
        server.arg("-D").arg(self.data());
        let mut set = |name: &str, value: &str| {
            server.arg("-c").arg(format!("{name}={value}"));
        };
        // Settings on the command line take precedence over those in files.
        let durable = match self.durability {
            Durability::Full => "on",
            Durability::None => "off",
        };
        set("fsync", durable);
        set("full_page_writes", durable);
        set("synchronous_commit", durable);
        set("listen_addresses", "");
        set("unix_socket_directories", &format!("\"{}\"", self.socket_folder.to_string_lossy().replace('"', "\"\"")));
        set("unix_socket_permissions", "0700");
        set("timezone", "UTC");
        // Tests open a few connections for each database.
        set("max_connections", "200");
        // Statements and rows hold patients' data and must not be logged.
        set("log_min_error_statement", "panic");
        set("log_error_verbosity", "terse");
        set("log_statement", "none");
        server.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.prepare(&mut server);
        self.child = Some(server.spawn()?);
        Ok(())
    }

    /// Sets the account, and a process group of its own, which Ctrl-C does not reach.
    fn prepare(&self, command: &mut Command) {
        self.account.apply(command);
        command.process_group(0).current_dir(&self.folder);
    }

    /// Processes of a killed server live on for a moment and keep the next one from starting. Any other reason is
    /// final.
    fn assert_worth_another_try(&self) -> Result<(), EmbeddedError> {
        let reason = self.log.reason(self.account);
        // A lock file that could not be made is another matter.
        let is_locked = reason.contains("lock file") && !reason.contains("could not");
        let will_pass = is_locked || reason.contains("shared memory block");
        if will_pass { Ok(()) } else { Err(EmbeddedError::DoesNotStart(reason)) }
    }

    /// PostgreSQL does not start while its old pid file names a running process, even of another program. Only the pid
    /// is replaced: the other lines of the file are needed, as they prevent a start while processes of a killed server
    /// live.
    fn disown_foreign_process(&self) -> io::Result<()> {
        let data = self.data();
        self.account.act(|| {
            if server_process::noted(&data).is_none() || server_process::running(&data).is_some() {
                return Ok(());
            }
            let path = data.join(server_process::PID_FILE);
            let text = fs::read_to_string(&path)?;
            let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
            // Replaced in one step, because an empty pid file would keep the server from ever starting.
            let replacement = self.folder.join("postmaster.pid.replacement");
            fs::write(&replacement, format!("{NO_PROCESS}\n{rest}"))?;
            fs::set_permissions(&replacement, fs::Permissions::from_mode(0o600))?;
            fs::rename(replacement, path)
        })
    }

    /// The running process of the server.
    fn process(&self) -> Option<Pid> {
        let data = self.data();
        self.account.act(|| Ok(server_process::running(&data))).ok().flatten()
    }
}

/// Deletes a folder to which a process that was killed may still add.
fn remove_folder(folder: &Path) -> io::Result<()> {
    let until = Instant::now() + REMOVAL_TIMEOUT;
    loop {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && Instant::now() < until => {
                std::thread::sleep(POLL);
            }
            removed => return removed,
        }
    }
}

/// The version of PostgreSQL that made the data; none: there is no data yet.
fn made_by(data: &Path) -> Option<u32> {
    fs::read_to_string(data.join("PG_VERSION")).ok()?.trim().parse().ok()
}

/// Sockets are kept beside the data or, if that path is too long or has a comma (which separates folders), in `/tmp`.
fn socket_folder(folder: &Path) -> PathBuf {
    let beside = folder.join("socket");
    let is_short = beside.as_os_str().len() + "/.s.PGSQL.5432".len() <= SOCKET_PATH_MAX;
    if is_short && !beside.as_os_str().as_encoded_bytes().contains(&b',') {
        return beside;
    }
    Path::new("/tmp").join(format!("intake-{}", path_hash(folder)))
}
