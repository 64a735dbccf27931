//! A copy of the files of a running PostgreSQL, by its own program, with the log that the copy needs.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::lchown;
use std::path::Path;
use std::process::{Command, Stdio};

use diesel::prelude::*;
use diesel::sql_types::{Integer, Text};

use super::EmbeddedPostgres;
use super::error::EmbeddedError;
use super::programs::Programs;
use crate::database::connecting::url::DatabaseUrl;
use crate::database::schema::schema_error::{CheckConnection, SchemaError, failed};

/// Reason why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum BaseBackupError {
    /// The database cannot be asked.
    #[error(transparent)]
    Database(#[from] SchemaError),
    /// PostgreSQL's programs of the server's version are not on this machine.
    #[error(transparent)]
    Programs(#[from] EmbeddedError),
    /// The reason that `pg_basebackup` gave.
    #[error("pg_basebackup: {0}")]
    Failed(String),
    /// The program cannot be run.
    #[error("pg_basebackup cannot be run")]
    Io(#[from] io::Error),
}

/// A server that can be copied.
#[derive(Debug, QueryableByName)]
pub struct BaseBackupSource {
    /// Its major version.
    #[diesel(sql_type = Integer)]
    pub version: i32,
    /// The role that copies it.
    #[diesel(sql_type = Text)]
    pub role: String,
    /// The register's database, one of those that are copied.
    #[diesel(sql_type = Text)]
    pub database: String,
    /// Value of `archive_mode`.
    #[diesel(sql_type = Text)]
    pub archive_mode: String,
}

impl BaseBackupSource {
    /// Asks the server.
    pub fn read(url: &DatabaseUrl) -> Result<Self, SchemaError> {
        let query = "SELECT current_setting('server_version_num')::int4 / 10000 AS version, \
            current_user::text AS role, current_database()::text AS database, \
            current_setting('archive_mode') AS archive_mode";
        diesel::sql_query(query).get_result(&mut CheckConnection::open(url)?.0).map_err(failed)
    }

    /// Copies the server's files into a folder that is not there yet, and returns when they are on disk. The lock is
    /// held until the program has ended, even if this process is killed.
    pub fn copy(
        &self,
        url: &DatabaseUrl,
        programs: Option<&Path>,
        lock: &File,
        into: &Path,
    ) -> Result<(), BaseBackupError> {
        let programs = Programs::find(programs, u32::try_from(self.version).ok())?;
        let mut program = Command::new(programs.base_backup());
        let url = url.latest().map_err(|error| BaseBackupError::Failed(error.clone()))?;
        // Everyone on the machine can read arguments.
        let (address, password) = url.without_password();
        program.arg("--dbname").arg(address).arg("--pgdata").arg(into);
        program.args(["--wal-method=stream", "--checkpoint=fast", "--no-password"]);
        program.env("LC_ALL", "C").envs(password.map(|password| ("PGPASSWORD", password)));
        let output = program.stdin(lock.try_clone()?).stdout(Stdio::null()).output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let reason = said.lines().find(|line| line.contains("error")).or(said.lines().last()).unwrap_or("no reason");
        let reason = reason.trim_start_matches("pg_basebackup: ").trim_start_matches("error: ");
        Err(BaseBackupError::Failed(reason.to_owned()))
    }
}

impl EmbeddedPostgres {
    /// Gives a folder and what is in it to the server's account, under which a copy of its data can be started.
    pub fn give(&self, folder: &Path) -> io::Result<()> {
        let server = self.server.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        server.account().ids().map_or(Ok(()), |ids| give(folder, ids))
    }
}

/// Gives a file, or a folder with all that is in it, to an account.
pub fn give(path: &Path, (user, group): (u32, u32)) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), (user, group))?;
        }
    }
    lchown(path, Some(user), Some(group))
}
