//! The account that the server runs under: our own or, because PostgreSQL refuses root, an unprivileged one. That
//! account could replace anything in its folders at any moment, by a link to a file of root's for example. So root does
//! nothing there with rights of its own.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Mode, OFlags};

use super::error::EmbeddedError;

/// Accounts to use instead of root: the one that Debian's package makes, else the one that every system has.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];
/// Folder in which root keeps databases whose own folder the server's account cannot enter, such as one below /root.
const ROOTS_DATABASES: &str = "/var/lib/intake";

/// The account of the server, if it is not our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Account {
    other: Option<(u32, u32)>,
}

impl Account {
    /// The user and group, if they are not our own.
    pub(super) fn ids(self) -> Option<(u32, u32)> {
        self.other
    }

    /// Our own account; as root, the owner of the data in this folder, else an unprivileged account. Only Linux lets a
    /// thread of root's take on the rights of another account.
    pub(super) fn for_server(folder: &Path) -> Result<Self, EmbeddedError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self { other: None });
        }
        if !cfg!(target_os = "linux") {
            return Err(EmbeddedError::NoAccount);
        }
        if let Ok(data) = fs::symlink_metadata(folder.join("data"))
            && data.uid() != 0
        {
            return Ok(Self { other: Some((data.uid(), data.gid())) });
        }
        let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let found = UNPRIVILEGED.iter().find_map(|name| ids_of(&accounts, name));
        Ok(Self { other: Some(found.ok_or(EmbeddedError::NoAccount)?) })
    }

    /// Makes a command run under this account, without the settings of this program, which may hold passwords.
    pub(super) fn apply(self, command: &mut Command) {
        if let Some((user, group)) = self.other {
            command.uid(user).gid(group);
        }
        for (name, _) in std::env::vars_os() {
            let bytes = name.as_encoded_bytes();
            if ["INTAKE_", "DATABASE_URL", "PG"].iter().any(|start| bytes.starts_with(start.as_bytes())) {
                command.env_remove(&name);
            }
        }
        // With this one a program would tell systemd that the service is ready.
        command.env("LC_ALL", "C").env_remove("NOTIFY_SOCKET");
    }

    /// Does this with the rights of this account.
    pub(super) fn act<T: Send>(self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let Some((user, group)) = self.other else { return work() };
        // A thread that ends with the work need not get its rights back.
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || become_account(user, group).and_then(|()| work()));
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread has failed")))
        })
    }

    /// Makes a folder that only this account and root can enter.
    pub(super) fn make_private_folder(self, folder: &Path) -> Result<(), EmbeddedError> {
        fs::create_dir_all(folder.parent().unwrap_or(folder))?;
        let make = || fs::DirBuilder::new().mode(0o700).create(folder);
        match self.act(make) {
            // Root's folder, in which the account can make none.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && self.other.is_some() => {
                make().or_else(|error| (error.kind() == io::ErrorKind::AlreadyExists).then_some(()).ok_or(error))?;
                self.own_folder(folder)?;
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.own_folder(folder)?,
            made => made?,
        }
        Ok(self.act(|| fs::set_permissions(folder, fs::Permissions::from_mode(0o700)))?)
    }

    /// Gives a folder of root's to this account. Where everybody can make folders, another user may have made it.
    fn own_folder(self, folder: &Path) -> Result<(), EmbeddedError> {
        let ours = self.other.map_or_else(|| rustix::process::geteuid().as_raw(), |(user, _)| user);
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let foreign = |_| EmbeddedError::ForeignFolder(folder.to_owned());
        let opened = rustix::fs::open(folder, flags, Mode::empty()).map_err(foreign)?;
        match (rustix::fs::fstat(&opened).map_err(io::Error::from)?.st_uid, self.other) {
            (owner, _) if owner == ours => Ok(()),
            (0, Some((user, group))) => Ok(fchown(opened, Some(user), Some(group))?),
            _ => Err(EmbeddedError::ForeignFolder(folder.to_owned())),
        }
    }

    /// The folder itself or, if this account could not reach it, one below [`ROOTS_DATABASES`].
    pub(super) fn reachable(self, folder: PathBuf) -> PathBuf {
        let Some((user, group)) = self.other else {
            return folder;
        };
        let can_enter = |ancestor: &Path| {
            fs::metadata(ancestor).is_ok_and(|metadata| {
                let needed = if metadata.uid() == user {
                    0o100
                } else if metadata.gid() == group {
                    0o010
                } else {
                    0o001
                };
                metadata.mode() & needed != 0
            })
        };
        if folder.ancestors().skip(1).all(can_enter) {
            return folder;
        }
        // The path so that people recognise it, its hash because a/b and a-b would be the same.
        let flat = folder.to_string_lossy().trim_start_matches('/').replace('/', "-");
        Path::new(ROOTS_DATABASES).join(format!("{flat}-{}", path_hash(&folder)))
    }
}

/// As root, becomes the account to which this folder belongs, if it is there: what root would write into it, or run out
/// of it, would be that account's. Only for a program that has no other thread yet.
pub fn become_owner(folder: &Path) -> io::Result<()> {
    match fs::metadata(folder) {
        Ok(found) if found.uid() != 0 && rustix::process::geteuid().is_root() => {
            become_account(found.uid(), found.gid())
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Takes the rights of this account for this thread, for good.
#[cfg(target_os = "linux")]
fn become_account(user: u32, group: u32) -> io::Result<()> {
    use rustix::process::{Gid, Uid};
    use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    Ok(set_thread_res_uid(user, user, user)?)
}

#[cfg(not(target_os = "linux"))]
fn become_account(_: u32, _: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The hash of a path (FNV-1a, which never changes between versions).
pub(super) fn path_hash(path: &Path) -> String {
    let hash = path
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
    format!("{hash:016x}")
}

/// The user and group of an account in the format of `/etc/passwd`.
fn ids_of(accounts: &str, name: &str) -> Option<(u32, u32)> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_account = fields.next() == Some(name);
        let mut ids = fields.skip(1).map_while(|id| id.parse().ok());
        is_account.then_some((ids.next()?, ids.next()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_read() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\npostgres:x:101:104::/var/lib/postgresql:/bin/bash\n";
        assert_eq!(ids_of(accounts, "postgres"), Some((101, 104)));
        assert_eq!(ids_of(accounts, "nobody"), None);
    }

    #[test]
    fn a_folder_that_the_account_cannot_enter_is_replaced() {
        let account = Account { other: Some((60_001, 60_001)) };
        let closed = tempfile::tempdir().unwrap();
        let inside = closed.path().join("project/.intake/postgres");
        fs::create_dir_all(inside.parent().unwrap()).unwrap();
        fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(account.reachable(inside.clone()).starts_with(ROOTS_DATABASES));
        fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o711)).unwrap();
        assert_eq!(account.reachable(inside.clone()), inside);
    }

    #[test]
    fn our_own_account_needs_no_other_folder() {
        let account = Account { other: None };
        assert_eq!(account.reachable("/closed/x".into()), Path::new("/closed/x"));
    }
}
