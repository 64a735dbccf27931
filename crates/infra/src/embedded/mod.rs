//! An embedded PostgreSQL: a private cluster in a folder, on a unix socket only, started by its first user and stopped
//! when the last one has ended, even if any of the processes is killed. Needs only PostgreSQL's programs.

mod account;
mod base_backup;
mod error;
mod install;
pub(crate) mod prepare;
mod programs;
mod server;
mod server_log;
mod server_process;
mod users;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::database::connecting::url::DatabaseUrl;
use crate::vital_thread::{Pulse, spawn_vital};
use account::Account;
pub use account::become_owner;
pub use base_backup::{BaseBackupError, BaseBackupSource, give};
pub use error::EmbeddedError;
pub use install::{InstallCommand, Packages};
use programs::Programs;
use server::Server;
pub use server::Settings;
use users::Users;

/// Time between two checks that the server is running.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);
/// Between two tries to start a server that does not start.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// Refuses a machine that has no PostgreSQL to make a database with, in this folder or, without one, in the usual
/// places.
pub fn assert_installed(programs: Option<&Path>) -> Result<(), EmbeddedError> {
    Programs::find(programs, None).map(drop)
}

/// Returns whether there is a database in this folder.
pub fn is_made(folder: &Path) -> Result<bool, EmbeddedError> {
    let requested = std::path::absolute(folder)?;
    let folder = Account::for_server(&requested)?.reachable(requested);
    Ok(folder.join("data").try_exists()?)
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
        // Before any folder is made: as root, its owner is chosen among the accounts that are there, and a package adds
        // one.
        assert_installed(settings.programs.as_deref())?;
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
            tracing::error!(error = %error, "the embedded database was abandoned");
        }
    }
}

/// Adds the user and makes sure that the server and its guard are running.
fn join(server: &mut Server, users: &Users, user: u32) -> Result<(), EmbeddedError> {
    let lock = users.lock()?;
    loop {
        if !users.exist()? {
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
    server.ensure_running(&lock)
}
