//! Finds PostgreSQL's programs where the usual packages put them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::EmbeddedError;
use super::install::POSTGRESQL;

/// The oldest version that is tested.
const OLDEST_VERSION: u32 = 15;

/// Places in which packages put the programs: the folder, and what stands before and after the part that differs.
const PACKAGED: [(&str, &str, &str); 8] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/usr/libexec", "postgresql", ""),
    ("/opt/homebrew/opt", "postgresql@", "bin"),
    ("/usr/local/opt", "postgresql@", "bin"),
    ("/home/linuxbrew/.linuxbrew/opt", "postgresql@", "bin"),
    ("/Applications/Postgres.app/Contents/Versions", "", "bin"),
    ("/opt/local/lib", "postgresql", "bin"),
];

/// In a debug build, the folder that stands for `/`: tests of a machine without PostgreSQL run on machines that have
/// it.
const TEST_ROOT: &str = "INTAKE_TEST_ROOT";

/// One installed PostgreSQL.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    folder: PathBuf,
    major: u32,
}

impl Programs {
    /// The programs that fit: of the version that made the data, else the newest. `folder` names the only place to
    /// look.
    pub(super) fn find(folder: Option<&Path>, made_by: Option<u32>) -> Result<Self, EmbeddedError> {
        if let Some(folder) = folder {
            let fits =
                |programs: &Self| made_by.map_or(programs.major >= OLDEST_VERSION, |made_by| programs.major == made_by);
            let named = Self::in_folder(folder.to_owned()).filter(fits);
            return named.ok_or_else(|| EmbeddedError::NotInFolder(folder.to_owned()));
        }
        let installed: Vec<Self> = usual_folders().into_iter().filter_map(Self::in_folder).collect();
        match made_by {
            Some(version) => installed
                .into_iter()
                .find(|programs| programs.major == version)
                .ok_or(EmbeddedError::VersionNotInstalled(version)),
            None => installed
                .into_iter()
                .filter(|programs| programs.major >= OLDEST_VERSION)
                .max_by_key(|programs| programs.major)
                .ok_or_else(|| EmbeddedError::NotInstalled(POSTGRESQL.command_here())),
        }
    }

    pub(super) fn server(&self) -> PathBuf {
        self.folder.join("postgres")
    }

    pub(super) fn initdb(&self) -> PathBuf {
        self.folder.join("initdb")
    }

    pub(super) fn base_backup(&self) -> PathBuf {
        self.folder.join("pg_basebackup")
    }

    fn in_folder(folder: PathBuf) -> Option<Self> {
        if !folder.join("initdb").is_file() {
            return None;
        }
        let output = Command::new(folder.join("postgres")).arg("--version").output().ok()?;
        let major = major_version(&String::from_utf8_lossy(&output.stdout))?;
        Some(Self { folder, major })
    }
}

fn usual_folders() -> Vec<PathBuf> {
    let root = std::env::var_os(TEST_ROOT).filter(|_| cfg!(debug_assertions)).unwrap_or_else(|| "/".into());
    let below_root = |folder: &str| Path::new(&root).join(folder.trim_start_matches('/'));
    let packaged = PACKAGED.iter().flat_map(|(parent, start, end)| {
        let entries = std::fs::read_dir(below_root(parent)).into_iter().flatten().flatten();
        let fitting = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(start.as_bytes()));
        fitting.map(|entry| entry.path().join(end)).collect::<Vec<_>>()
    });
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).filter(|folder| folder.as_os_str() != OsStr::new(""));
    packaged.chain([below_root("usr/local/pgsql/bin")]).chain(on_path.collect::<Vec<_>>()).collect()
}

/// The major version: 15 in `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, 17 in `17beta1`.
fn major_version(text: &str) -> Option<u32> {
    let version = text.split_once("(PostgreSQL) ")?.1;
    let end = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(major_version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(15));
        assert_eq!(major_version("postgres (PostgreSQL) 17beta1"), Some(17));
        assert_eq!(major_version("postgres 15"), None);
    }

    #[test]
    fn nothing_is_found_in_an_empty_folder() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(Programs::find(Some(folder.path()), None), Err(EmbeddedError::NotInFolder(_))));
        assert!(matches!(Programs::find(None, Some(9)), Err(EmbeddedError::VersionNotInstalled(9))));
    }
}
