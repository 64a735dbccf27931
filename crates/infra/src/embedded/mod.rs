//! An embedded PostgreSQL: a private cluster in a folder, on a unix socket only, started by its first user and stopped
//! when the last one has ended, even if any of the processes is killed. Needs only PostgreSQL's programs.

mod account;
mod install;
pub(crate) mod prepare;
mod programs;
mod server;
mod server_log;
mod server_process;
mod users;

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::database::durability::Durability;
use crate::database::url::DatabaseUrl;
use crate::vital_thread::{Pulse, spawn_vital};
pub use install::{InstallCommand, Packages};
use programs::Programs;
use server::Server;
use users::Users;

/// How often to check that the server is running.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);
/// Between two tries to start a server that does not start.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// Which database, and for whom.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the cluster is, or is to be made.
    pub folder: PathBuf,
    /// What a commit must survive.
    pub durability: Durability,
    /// The folder of PostgreSQL's programs; none: look in the usual places.
    pub programs: Option<PathBuf>,
    /// The process that uses the database until it ends: usually our own.
    pub user: u32,
}

/// Why there is no embedded database.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// No PostgreSQL on this machine, and what would install it, if that is known.
    #[error("no PostgreSQL 15 or newer is installed: {}", how_to_install(.0.as_ref()))]
    NotInstalled(Option<InstallCommand>),
    /// The data was made by a version of PostgreSQL that is not installed.
    #[error("the database was made by PostgreSQL {0}, which is not installed: install it")]
    VersionNotInstalled(u32),
    /// The named folder has no version of PostgreSQL that fits.
    #[error("{} holds no PostgreSQL 15 or newer that can open this database: install one, name another folder", .0.display())]
    NotInFolder(PathBuf),
    /// A folder belongs to another user.
    #[error("{} belongs to another user", .0.display())]
    ForeignFolder(PathBuf),
    /// The program runs as root and has no other account to run PostgreSQL under.
    #[error("PostgreSQL does not run as root, and there is no account postgres or nobody")]
    NoAccount,
    /// `initdb` failed.
    #[error("the database could not be created: {0}")]
    CannotMake(String),
    /// The server ended, or never answered.
    #[error("the database does not start: {0}")]
    DoesNotStart(String),
    /// The server did not end in time.
    #[error("the database does not stop")]
    DoesNotStop,
    /// Files could not be read or written.
    #[error("the database's folder cannot be used")]
    Io(#[from] io::Error),
}

fn how_to_install(command: Option<&InstallCommand>) -> String {
    match command {
        Some(command) if command.may_run() => format!("install its programs with `{command}`, which starts no server"),
        Some(command) => format!("as root, install its programs with `{command}`, which starts no server"),
        None => "install its programs (no server has to run)".to_owned(),
    }
}

/// Refuses a machine that has no PostgreSQL to make a database with.
pub fn assert_installed() -> Result<(), EmbeddedError> {
    Programs::find(None, None).map(drop)
}

/// A running embedded database, used by this process until it is dropped.
pub struct EmbeddedPostgres {
    server: Arc<Mutex<Server>>,
    users: Arc<Users>,
    user: u32,
    watcher: Option<(Sender<()>, JoinHandle<()>)>,
}

impl EmbeddedPostgres {
    /// Starts the database unless it is running, and adds a user.
    pub fn start(settings: &Settings) -> Result<Self, EmbeddedError> {
        // Before any folder is made: as root, its owner is chosen among the accounts that are there, and a package adds one.
        Programs::find(settings.programs.as_deref(), None)?;
        let mut server = Server::new(settings)?;
        let users = Users::of(server.folder(), server.account());
        join(&mut server, &users, settings.user)?;
        let (server, users) = (Arc::new(Mutex::new(server)), Arc::new(users));
        Ok(Self { server, users, user: settings.user, watcher: None })
    }

    /// Starts the server again if it has died.
    pub fn ensure_running(&self) -> Result<(), EmbeddedError> {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if server.is_alive() { Ok(()) } else { join(&mut server, &self.users, self.user) }
    }

    /// Watches the server from now on and starts it again if it dies.
    pub fn keep_alive(&mut self) -> io::Result<()> {
        let (stop, stopped) = channel();
        let (server, users, user) = (Arc::clone(&self.server), Arc::clone(&self.users), self.user);
        let watch = move |_: Pulse| {
            let mut is_down = false;
            let mut pause = WATCH_INTERVAL;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let mut server = server.lock().unwrap_or_else(PoisonError::into_inner);
                if server.is_alive() {
                    (is_down, pause) = (false, WATCH_INTERVAL);
                    let _ = users.ensure_guard();
                    continue;
                }
                if !std::mem::replace(&mut is_down, true) {
                    tracing::warn!("the embedded database has died; starting it again");
                }
                match join(&mut server, &users, user) {
                    Ok(()) => (is_down, pause) = (false, WATCH_INTERVAL),
                    Err(error) => {
                        if pause == WATCH_INTERVAL {
                            tracing::error!(error = %error, "the embedded database does not start; still trying");
                        }
                        pause = RETRY_INTERVAL;
                    }
                }
            }
        };
        let thread = spawn_vital("embedded-postgres", std::thread::Builder::new(), watch)?;
        self.watcher = Some((stop, thread));
        Ok(())
    }

    /// The address for the owner of the schema.
    #[must_use]
    pub fn owner_url(&self, database: &str) -> DatabaseUrl {
        self.server.lock().unwrap_or_else(PoisonError::into_inner).owner_url(database)
    }

    /// The address for a role.
    #[must_use]
    pub fn url(&self, role: &str, database: &str) -> DatabaseUrl {
        self.server.lock().unwrap_or_else(PoisonError::into_inner).url(role, database)
    }

    /// Waits until no other process starts, stops or prepares this database. The lock ends when the file is dropped.
    pub fn lock(&self) -> io::Result<File> {
        self.users.lock()
    }

    fn end_watcher(&mut self) {
        if let Some((stop, thread)) = self.watcher.take() {
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}

impl Drop for EmbeddedPostgres {
    /// Removes the user, and stops the server after the last one.
    fn drop(&mut self) {
        self.end_watcher();
        let Ok(_lock) = self.users.lock() else {
            return;
        };
        if self.users.remove(self.user)
            && let Err(error) = self.server.lock().unwrap_or_else(PoisonError::into_inner).stop()
        {
            tracing::error!(error = %error, "the embedded database was left behind");
        }
    }
}

/// Adds the user and makes sure that the server and its guard are running.
fn join(server: &mut Server, users: &Users, user: u32) -> Result<(), EmbeddedError> {
    let _lock = users.lock()?;
    loop {
        if !users.exist() {
            // A server that still runs was left by its last user and is about to stop, or has lost its guard.
            server.stop()?;
            users.wait_for_guard_to_end();
            users.open_list()?;
        }
        match users.add(user) {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    users.ensure_guard()?;
    server.ensure_running()
}
