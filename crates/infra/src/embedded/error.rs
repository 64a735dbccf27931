//! Why there is no embedded database, and what would help.

use std::io;
use std::path::PathBuf;

use super::install::InstallCommand;

/// Reason why there is no embedded database.
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
    #[error(
        "PostgreSQL does not run as root, and no account postgres or nobody can be used: start intake as another user"
    )]
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
