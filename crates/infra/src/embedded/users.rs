//! The users of a folder's database. A user is a running process, noted by its number; the guard, a separate process,
//! stops the server when the last user has ended.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::account::Account;

/// The guard checks twice a second.
const GUARD_END: Duration = Duration::from_secs(2);
const GUARD: &str = include_str!("guard.sh");

/// The users of one folder.
#[derive(Debug)]
pub(super) struct Users {
    folder: PathBuf,
    account: Account,
}

impl Users {
    pub(super) fn of(folder: &Path, account: Account) -> Self {
        Self { folder: folder.to_owned(), account }
    }

    /// Waits until no other process starts or stops the server of this folder. The lock ends when the file is dropped,
    /// and so are its copies.
    pub(super) fn lock(&self) -> io::Result<File> {
        let lock = self.open("start.lock")?;
        lock.lock()?;
        Ok(lock)
    }

    /// Returns whether the database has users, so that the guard will not stop it.
    pub(super) fn exist(&self) -> io::Result<bool> {
        self.account.act(|| self.list().try_exists())
    }

    /// Makes an empty list, for a server about to start.
    pub(super) fn open_list(&self) -> io::Result<()> {
        self.account.act(|| fs::create_dir_all(self.list()))
    }

    /// Adds a user. Fails with `NotFound` if the last user has just been removed.
    pub(super) fn add(&self, process: u32) -> io::Result<()> {
        // Written in one piece: the guard may read it at any moment.
        let start = start_of(process).map(|start| start + "\n").unwrap_or_default();
        self.account.act(|| fs::write(self.list().join(process.to_string()), start))
    }

    /// Removes a user and returns whether it was the last one, which then has to stop the server.
    pub(super) fn remove(&self, process: u32) -> bool {
        let remove = || {
            let _ = fs::remove_file(self.list().join(process.to_string()));
            // Fails unless the list is empty.
            fs::remove_dir(self.list())
        };
        self.account.act(remove).is_ok()
    }

    /// Waits until a guard that saw no users has ended, so that it is not mistaken for a new one.
    pub(super) fn wait_for_guard_to_end(&self) {
        let until = Instant::now() + GUARD_END;
        while Instant::now() < until {
            match self.open("guard.lock").map(|lock| lock.try_lock()) {
                Ok(Err(TryLockError::WouldBlock)) => std::thread::sleep(Duration::from_millis(20)),
                _ => return,
            }
        }
    }

    /// Starts the guard unless it is running. It holds a lock through its standard input, which the system releases
    /// when the guard ends, however it ends. Its script is no file, which could be replaced.
    pub(super) fn ensure_guard(&self) -> io::Result<()> {
        let lock = self.open("guard.lock")?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let mut guard = Command::new("/bin/sh");
        guard.args(["-c", GUARD, "intake-guard"]).arg(&self.folder);
        self.account.apply(&mut guard);
        guard.stdin(lock).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = guard.process_group(0).current_dir("/").spawn()?;
        // A thread waits for its end: the guard usually outlives this process.
        std::thread::Builder::new().name("guard".into()).stack_size(64 * 1024).spawn(move || child.wait())?;
        Ok(())
    }

    fn list(&self) -> PathBuf {
        self.folder.join("users")
    }

    fn open(&self, name: &str) -> io::Result<File> {
        let open = || OpenOptions::new().create(true).truncate(false).write(true).open(self.folder.join(name));
        self.account.act(open)
    }
}

/// Returns when a process started, in the system's own count: this distinguishes it from an earlier one with the same
/// number.
fn start_of(process: u32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name may hold anything, so count from where it ends.
    status.rsplit_once(") ")?.1.split(' ').nth(19).map(str::to_owned)
}
