//! The account that the server runs under: our own or, because PostgreSQL refuses root, an unprivileged one.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::EmbeddedError;

/// Accounts to use instead of root: the one that Debian's package makes, else the one that every system has.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];
/// Where root keeps databases whose own folder the server's account cannot enter, such as one below /root.
const ROOTS_DATABASES: &str = "/var/lib/intake";

/// The account of the server, if it is not our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Account {
    other: Option<(u32, u32)>,
}

impl Account {
    /// Our own account; as root, the owner of the data in this folder, else an unprivileged account.
    pub(super) fn for_server(folder: &Path) -> Result<Self, EmbeddedError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self { other: None });
        }
        if let Ok(data) = fs::metadata(folder.join("data"))
            && data.uid() != 0
        {
            return Ok(Self { other: Some((data.uid(), data.gid())) });
        }
        let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let found = UNPRIVILEGED.iter().find_map(|name| ids_of(&accounts, name));
        Ok(Self { other: Some(found.ok_or(EmbeddedError::NoAccount)?) })
    }

    /// Makes a command run under this account.
    pub(super) fn apply(self, command: &mut Command) {
        if let Some((user, group)) = self.other {
            command.uid(user).gid(group);
        }
    }

    /// Makes a folder that only this account and root can enter.
    pub(super) fn make_private_folder(self, folder: &Path) -> Result<(), EmbeddedError> {
        let ours = self.other.map_or_else(|| rustix::process::geteuid().as_raw(), |(user, _)| user);
        fs::create_dir_all(folder.parent().unwrap_or(folder))?;
        match fs::DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Where everybody can make folders, another user may have made this one.
                let found = fs::symlink_metadata(folder)?;
                if !found.is_dir() || (found.uid() != ours && found.uid() != 0) {
                    return Err(EmbeddedError::ForeignFolder(folder.to_owned()));
                }
            }
            other => other?,
        }
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        Ok(self.own(folder)?)
    }

    /// Gives a file to this account.
    pub(super) fn own(self, path: &Path) -> io::Result<()> {
        match self.other {
            Some((user, group)) => lchown(path, Some(user), Some(group)),
            None => Ok(()),
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
