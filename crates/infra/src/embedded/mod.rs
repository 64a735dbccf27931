//! A PostgreSQL of one's own: a private cluster in a folder, on a unix socket alone, started by its first user and stopped
//! when its last one is gone. Survives kill -9 of anyone involved. Needs PostgreSQL's programs, nothing else.

mod account;
mod programs;
mod server;
mod users;

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::database_url::DatabaseUrl;
use server::Server;
use users::Users;

/// How often to look whether the server still lives.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// Which database, and for whom.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the cluster is, or shall be made.
    pub folder: PathBuf,
    /// What a commit is worth.
    pub durability: Durability,
    /// The folder of PostgreSQL's programs; none: look in the usual places.
    pub programs: Option<PathBuf>,
    /// The process whose end is the user's end: mostly our own.
    pub user: u32,
}

/// What a commit is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It survives a power cut.
    Full,
    /// Nothing, but it is fast: for tests.
    None,
}

/// Why there is no embedded database.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// No PostgreSQL on this machine.
    #[error(
        "no PostgreSQL 15 or newer is installed: install it (Debian, Ubuntu: apt install postgresql; macOS: brew install postgresql@17), or set DATABASE_URL"
    )]
    NotInstalled,
    /// The data was made by a PostgreSQL that is not there.
    #[error("the database was made by PostgreSQL {0}, which is not installed: install it, or set DATABASE_URL")]
    VersionNotInstalled(u32),
    /// As root, and without an account to drop to.
    #[error("PostgreSQL does not run as root, and there is neither an account postgres nor nobody")]
    NoAccount,
    /// `initdb` failed.
    #[error("the database could not be made: {0}")]
    CannotMake(String),
    /// The server ended, or never answered.
    #[error("the database does not start: {0}")]
    DoesNotStart(String),
    /// The server would not end.
    #[error("the database does not stop")]
    DoesNotStop,
    /// Files could not be read or written.
    #[error("the database's folder cannot be used: {0}")]
    Io(#[from] io::Error),
}

/// A running embedded database, used by this process until it is dropped.
pub struct EmbeddedPostgres {
    server: Arc<Mutex<Server>>,
    users: Arc<Users>,
    /// None once the database is left to its guard.
    user: Option<u32>,
    watcher: Option<(Sender<()>, JoinHandle<()>)>,
}

impl EmbeddedPostgres {
    /// Starts the database, or joins those who use it already.
    pub fn start(settings: &Settings) -> Result<Self, EmbeddedError> {
        let mut server = Server::new(settings)?;
        let users = Users::of(server.folder());
        join(&mut server, &users, settings.user)?;
        let (server, users) = (Arc::new(Mutex::new(server)), Arc::new(users));
        Ok(Self { server, users, user: Some(settings.user), watcher: None })
    }

    /// Keeps the database alive from now on: a server that dies is started again.
    pub fn keep_alive(&mut self) -> io::Result<()> {
        let (stop, stopped) = channel();
        let Some(user) = self.user else {
            return Ok(());
        };
        let (server, users) = (Arc::clone(&self.server), Arc::clone(&self.users));
        let watch = move || {
            while stopped.recv_timeout(WATCH_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let mut server = server.lock().unwrap_or_else(PoisonError::into_inner);
                if server.is_alive() {
                    let _ = users.ensure_guard();
                    continue;
                }
                tracing::warn!("the embedded database has died; starting it again");
                if let Err(error) = join(&mut server, &users, user) {
                    tracing::error!(error = %error, "the embedded database could not be started again");
                }
            }
        };
        let thread = std::thread::Builder::new().name("embedded-postgres".into()).spawn(watch)?;
        self.watcher = Some((stop, thread));
        Ok(())
    }

    /// Connects as the owner of everything.
    #[must_use]
    pub fn owner_url(&self, database: &str) -> DatabaseUrl {
        self.server.lock().unwrap_or_else(PoisonError::into_inner).owner_url(database)
    }

    /// Connects as a role.
    #[must_use]
    pub fn url(&self, role: &str, database: &str) -> DatabaseUrl {
        self.server.lock().unwrap_or_else(PoisonError::into_inner).url(role, database)
    }

    /// Waits until no other process starts, stops or prepares this database.
    pub fn lock(&self) -> io::Result<impl Drop + use<>> {
        self.users.lock().map(Lock)
    }

    /// Lets the database go on after this process has dropped it, for as long as its user lives.
    pub fn leave_to_guard(mut self) {
        self.user = None;
    }

    fn end_watcher(&mut self) {
        if let Some((stop, thread)) = self.watcher.take() {
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}

impl Drop for EmbeddedPostgres {
    /// Leaves; the last user stops the server.
    fn drop(&mut self) {
        self.end_watcher();
        let (Some(user), Ok(_lock)) = (self.user, self.users.lock()) else {
            return;
        };
        if self.users.remove(user)
            && let Err(error) = self.server.lock().unwrap_or_else(PoisonError::into_inner).stop()
        {
            tracing::error!(error = %error, "the embedded database was left behind");
        }
    }
}

struct Lock(std::fs::File);

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Notes the user and makes sure that server and guard live.
fn join(server: &mut Server, users: &Users, user: u32) -> Result<(), EmbeddedError> {
    let _lock = users.lock()?;
    loop {
        if !users.exist() {
            // Whatever still runs was left by its last user and is about to stop, or has lost its guard.
            server.stop()?;
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
