//! One PostgreSQL server over one data folder: made, started, watched and stopped. Everything here happens under the
//! folder's start lock.

use std::fs::{self, File, OpenOptions};
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
use super::programs::Programs;
use super::{EmbeddedError, Settings};
use crate::database::durability::Durability;
use crate::database::url::DatabaseUrl;

/// The role that owns the schema and may do everything: used to migrate, never to serve.
const OWNER: &str = "intake_owner";
/// A crashed server replays its log first, which may take a while on a slow disk.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// A fast shutdown writes one checkpoint.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);
/// The longest path of a unix socket that every system takes.
const SOCKET_PATH_MAX: usize = 103;
/// The log is for finding out why the database did not start; old lines help nobody.
const LOG_MAX: u64 = 10 * 1024 * 1024;
/// A number that no process has.
const NO_PROCESS: &str = "2147483647";

#[derive(Debug)]
pub(super) struct Server {
    folder: PathBuf,
    socket_folder: PathBuf,
    account: Account,
    durability: Durability,
    programs: Option<PathBuf>,
    /// Our own child, if it was us who started the server: to be reaped.
    child: Option<Child>,
    /// How long the log was before the server was started: what comes after tells why it ended.
    log_start: u64,
}

impl Server {
    pub(super) fn new(settings: &Settings) -> Result<Self, EmbeddedError> {
        let wished = std::path::absolute(&settings.folder)?;
        let account = Account::for_server(&wished)?;
        let folder = account.reachable(wished.clone());
        if folder != wished {
            tracing::info!(folder = %folder.display(), "the database is kept outside of the data folder, which the account it runs under cannot enter");
        }
        account.make_private_folder(&folder)?;
        // One name for one folder, by whatever link it was reached: a server is known by it.
        let folder = folder.canonicalize()?;
        let socket_folder = socket_folder(&folder);
        account.make_private_folder(&socket_folder)?;
        let programs = settings.programs.clone();
        Ok(Self {
            folder,
            socket_folder,
            account,
            durability: settings.durability,
            programs,
            child: None,
            log_start: 0,
        })
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

    /// Whether the process of the server lives.
    pub(super) fn is_alive(&mut self) -> bool {
        if let Some(child) = &mut self.child
            && child.try_wait().is_ok_and(|status| status.is_some())
        {
            self.child = None;
        }
        self.server_process().is_some()
    }

    /// Starts the server if it does not run, and waits until it answers.
    pub(super) fn ensure_running(&mut self) -> Result<(), EmbeddedError> {
        let until = Instant::now() + START_TIMEOUT;
        let programs = Programs::find(self.programs.as_deref(), made_by(&self.data()))?;
        if made_by(&self.data()).is_none() {
            self.make_data(&programs)?;
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
        Err(EmbeddedError::DoesNotStart(self.reason_in_log()))
    }

    /// Stops the server if it runs, and waits until it is gone.
    pub(super) fn stop(&mut self) -> Result<(), EmbeddedError> {
        let until = Instant::now() + STOP_TIMEOUT;
        let mut is_asked = false;
        while self.is_alive() {
            if let Some(process) = self.server_process().filter(|_| !is_asked) {
                // A fast shutdown: sessions end, everything is written.
                let _ = kill_process(process, Signal::INT);
                // Whoever was stopped hears of it only when it goes on.
                for stopped in children_of(process).chain([process]) {
                    let _ = kill_process(stopped, Signal::CONT);
                }
                is_asked = true;
            }
            if Instant::now() > until {
                return Err(EmbeddedError::DoesNotStop);
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Makes the data folder under another name first: an interrupted start leaves nothing half made behind.
    fn make_data(&self, programs: &Programs) -> Result<(), EmbeddedError> {
        let unfinished = self.folder.join("data.unfinished");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished)?;
        }
        let mut initdb = Command::new(programs.initdb());
        initdb.arg("--pgdata").arg(&unfinished).args(["--username", OWNER, "--auth", "trust", "--encoding", "UTF8"]);
        initdb.args(["--locale", "C", "--no-instructions"]);
        if self.durability == Durability::None {
            initdb.arg("--no-sync");
        }
        self.prepare(&mut initdb);
        let output = initdb.output()?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr);
            return Err(EmbeddedError::CannotMake(
                reason.trim().lines().last().unwrap_or("no reason given").to_owned(),
            ));
        }
        fs::rename(&unfinished, self.data())?;
        Ok(())
    }

    fn start(&mut self, programs: &Programs) -> Result<(), EmbeddedError> {
        self.disown_foreign_process()?;
        let log = self.open_log()?;
        self.log_start = log.metadata()?.len();
        let mut server = Command::new(programs.server());
        server.arg("-D").arg(self.data());
        let mut set = |name: &str, value: &str| {
            server.arg("-c").arg(format!("{name}={value}"));
        };
        // Given here, they win over whatever a file says.
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
        // Nothing of a statement or a row belongs into a log: they hold patients.
        set("log_min_error_statement", "panic");
        set("log_error_verbosity", "terse");
        set("log_statement", "none");
        server.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.prepare(&mut server);
        self.child = Some(server.spawn()?);
        Ok(())
    }

    /// What every program of the server needs: its account, and a process group of its own, which ctrl-c does not reach.
    fn prepare(&self, command: &mut Command) {
        self.account.apply(command);
        command
            .process_group(0)
            .current_dir(&self.folder)
            .env("LC_ALL", "C")
            .env_remove("PGDATA")
            .env_remove("PGOPTIONS");
    }

    fn open_log(&self) -> io::Result<File> {
        let log = self.folder.join("postgres.log");
        if fs::metadata(&log).is_ok_and(|metadata| metadata.len() > LOG_MAX) {
            fs::remove_file(&log)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(&log)?;
        self.account.own(&log)?;
        Ok(file)
    }

    fn reason_in_log(&self) -> String {
        let log = fs::read(self.folder.join("postgres.log")).unwrap_or_default();
        let start = usize::try_from(self.log_start).unwrap_or(0);
        let text = String::from_utf8_lossy(log.get(start..).unwrap_or_default());
        let reason = text.lines().rfind(|line| line.contains("FATAL")).unwrap_or("see postgres.log in its folder");
        reason.to_owned()
    }

    /// A server that was killed leaves parts behind for a moment, which keep the next one out. Any other reason to end
    /// will stay.
    fn assert_worth_another_try(&self) -> Result<(), EmbeddedError> {
        let reason = self.reason_in_log();
        let will_pass = reason.contains("shared memory block") || reason.contains("lock file");
        if will_pass { Ok(()) } else { Err(EmbeddedError::DoesNotStart(reason)) }
    }

    /// The server's process, if it lives: the one its pid file names, unless that number belongs to another program.
    fn server_process(&self) -> Option<Pid> {
        let process = self.noted_process()?;
        let arguments = arguments_of(process)?;
        arguments.contains(&*self.data().to_string_lossy()).then_some(process)
    }

    fn noted_process(&self) -> Option<Pid> {
        let pid_file = fs::read_to_string(self.data().join("postmaster.pid")).ok()?;
        Pid::from_raw(pid_file.lines().next()?.trim().parse().ok()?)
    }

    /// PostgreSQL does not start while its old pid file names a living process, even a stranger's. The file is kept, for
    /// its other lines keep us out while parts of a killed server live; only the number is replaced.
    fn disown_foreign_process(&self) -> io::Result<()> {
        if self.noted_process().is_none() || self.server_process().is_some() {
            return Ok(());
        }
        let path = self.data().join("postmaster.pid");
        let text = fs::read_to_string(&path)?;
        let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
        // In one step: an empty pid file would keep the server from starting for ever.
        let replacement = self.folder.join("postmaster.pid.replacement");
        fs::write(&replacement, format!("{NO_PROCESS}\n{rest}"))?;
        fs::set_permissions(&replacement, fs::Permissions::from_mode(0o600))?;
        self.account.own(&replacement)?;
        fs::rename(replacement, path)
    }
}

/// The version of PostgreSQL that made the data; none: there is none yet.
fn made_by(data: &Path) -> Option<u32> {
    fs::read_to_string(data.join("PG_VERSION")).ok()?.trim().parse().ok()
}

/// Sockets live beside the data, or, where that path is too long for one or would look like a list, in the system's
/// folder for such.
fn socket_folder(folder: &Path) -> PathBuf {
    let beside = folder.join("socket");
    let is_short = beside.as_os_str().len() + "/.s.PGSQL.5432".len() <= SOCKET_PATH_MAX;
    if is_short && !beside.as_os_str().as_encoded_bytes().contains(&b',') {
        return beside;
    }
    Path::new("/tmp").join(format!("intake-{}", path_hash(folder)))
}

/// As far as the system tells.
fn children_of(process: Pid) -> impl Iterator<Item = Pid> {
    let number = process.as_raw_nonzero();
    let children = fs::read_to_string(format!("/proc/{number}/task/{number}/children")).unwrap_or_default();
    let children: Vec<_> = children.split_whitespace().filter_map(|child| Pid::from_raw(child.parse().ok()?)).collect();
    children.into_iter()
}

fn arguments_of(process: Pid) -> Option<String> {
    let number = process.as_raw_nonzero();
    if let Ok(arguments) = fs::read(format!("/proc/{number}/cmdline")) {
        return Some(String::from_utf8_lossy(&arguments).replace('\0', " "));
    }
    if Path::new("/proc/self").exists() {
        return None;
    }
    let output = Command::new("ps").args(["-p", &number.to_string(), "-o", "args="]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
