//! The log of the server: kept only to find out why the database did not start, and to say so in one line.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::account::Account;

/// A longer log is deleted.
const LENGTH_MAX: u64 = 10 * 1024 * 1024;
/// The server says this to clients that connect while it starts, such as our own look whether it has started.
const NOT_YET: &str = "FATAL:  the database system is ";
/// The size of one file of the server's write-ahead log: without room for another one it may not start.
const ROOM_MIN: u64 = 16 * 1024 * 1024;

/// The log of one folder's server.
#[derive(Debug)]
pub(super) struct ServerLog {
    folder: PathBuf,
    /// Its length before the server was started: what follows says why it ended.
    start: u64,
}

impl ServerLog {
    pub(super) fn of(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), start: 0 }
    }

    /// Opens it for a server that is about to be started.
    pub(super) fn open(&mut self, account: Account) -> io::Result<File> {
        let path = self.path();
        let log = account.act(|| {
            if fs::metadata(&path).is_ok_and(|metadata| metadata.len() > LENGTH_MAX) {
                fs::remove_file(&path)?;
            }
            OpenOptions::new().create(true).append(true).open(&path)
        })?;
        self.start = log.metadata()?.len();
        Ok(log)
    }

    /// Returns why the server ended, or what it did last.
    pub(super) fn reason(&self, account: Account) -> String {
        let log = account.act(|| fs::read(self.path())).unwrap_or_default();
        let start = usize::try_from(self.start).unwrap_or(0);
        let text = String::from_utf8_lossy(log.get(start..).unwrap_or_default());
        let reason = reason_in(&text).unwrap_or("it wrote nothing to postgres.log in its folder");
        match room(&self.folder) {
            Some(room) if room < ROOM_MIN => {
                format!("{reason}; the disk is full: {} MiB are left", room / 1024 / 1024)
            }
            _ => reason.to_owned(),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("postgres.log")
    }
}

fn reason_in(text: &str) -> Option<&str> {
    let lines = || text.lines().filter(|line| !line.contains(NOT_YET) && !line.is_empty());
    let ended = lines().rfind(|line| line.contains("FATAL:") || line.contains("PANIC:"));
    ended.or_else(|| lines().next_back())
}

/// The bytes that the disk of this folder has left for others than root.
fn room(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_says_why_is_found() {
        let starting = "LOG:  starting PostgreSQL 15.18\nFATAL:  the database system is starting up\n";
        let full = "PANIC:  could not write to file \"pg_wal/xlogtemp.7\": No space left on device";
        let panicked = format!("{starting}{full}\nLOG:  startup process (PID 7) was terminated by signal 6: Aborted\n");
        let refused = "FATAL:  data directory \"/data\" has invalid permissions";
        let cases = [
            (panicked.as_str(), Some(full)),
            (&format!("{refused}\nDETAIL:  Permissions should be u=rwx (0700).\n"), Some(refused)),
            (starting, Some("LOG:  starting PostgreSQL 15.18")),
            ("", None),
        ];
        for (text, reason) in cases {
            assert_eq!(reason_in(text), reason, "{text}");
        }
    }

    #[test]
    fn a_server_that_wrote_nothing_is_not_given_the_reason_of_an_earlier_one() {
        use std::os::unix::fs::PermissionsExt;

        let outer = tempfile::tempdir().unwrap();
        fs::set_permissions(outer.path(), fs::Permissions::from_mode(0o711)).unwrap();
        let folder = outer.path().join("postgres");
        let account = Account::for_server(&folder).unwrap();
        account.make_private_folder(&folder).unwrap();
        account.act(|| fs::write(folder.join("postgres.log"), "FATAL:  an earlier reason\n")).unwrap();
        let mut log = ServerLog::of(&folder);
        log.open(account).unwrap();
        let reason = log.reason(account);
        assert!(reason.starts_with("it wrote nothing to postgres.log"), "{reason}");
    }
}
