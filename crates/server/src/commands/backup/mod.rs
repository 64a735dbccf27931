//! `intake backup`: copies the PostgreSQL of this machine with what a restore needs, or tries the newest copy. A copy
//! has its name only when it is complete and on disk: whenever the command is killed, the last good one stays.

mod drill;
mod folder;
mod restore;

use std::fs::OpenOptions;
use std::io::{BufWriter, IntoInnerError};
use std::path::Path;

use anyhow::{Context, anyhow};
use intake_infra::Database;
use intake_infra::embedded::{BaseBackupError, BaseBackupSource};
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, futimens};
use serde_json::json;

use super::audit;
use super::operator::DEADLINE;
use super::output::{print_change, print_result};
use crate::backend::{Backend, explain};
use crate::export::standard_error::say;
use crate::settings::backup_arguments::BackupArguments;
use crate::settings::configuration::Configuration;
use folder::Folder;

pub(crate) fn run(arguments: &BackupArguments, configuration: &Configuration) -> anyhow::Result<()> {
    let mut folder = Folder::open(&arguments.folder, arguments.check)?;
    if arguments.check {
        let newest = folder.newest()?;
        let report = drill::run(&newest, configuration)?;
        return print_result(&arguments.output, &json!({ "backup": newest, "report": report }), &report);
    }
    let backend = Backend::reach(configuration)?;
    let unfinished = folder.begin_backup()?;
    let embedded = backend.embedded.as_ref();
    if let (Some(embedded), true) = (embedded, folder.is_new) {
        embedded.give(folder.path()).with_context(|| folder.path().display().to_string())?;
    }
    let source = BaseBackupSource::read(&backend.owner).map_err(explain(backend.owner_setting))?;
    if source.archive_mode != "off" {
        say("this PostgreSQL archives its log already, from which docs/operations/restoring.md restores more")?;
    }
    let copied =
        source.copy(&backend.owner, configuration.postgres_bin.as_deref(), folder.lock(), &unfinished.join("data"));
    copied.map_err(|error| advise(error, &source.role))?;
    restore::write(&unfinished, &source, configuration)?;
    // After the data, so that nothing is in the data of which the record does not tell.
    write_record(&backend, &unfinished.join(restore::RECORD))?;
    match embedded {
        Some(embedded) => embedded.give(&unfinished).with_context(|| unfinished.display().to_string())?,
        None => folder.give(&unfinished)?,
    }
    let backup = folder.finish_backup(&unfinished)?;
    let deleted = folder.delete_all_but(arguments.keep.into())?;
    let command = restore::command(&backup, embedded.is_some());
    let value = json!({ "backup": backup, "deleted": deleted, "restoreCommand": command });
    print_change(&arguments.output, &value, &text(&backup, &command))?;
    configuration.backup_mark.as_deref().map_or(Ok(()), touch)
}

/// Sets the time of the file to that of its file system. The account need not own it.
fn touch(mark: &Path) -> anyhow::Result<()> {
    let is_now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: is_now, last_modification: is_now };
    let file = OpenOptions::new().create(true).append(true).open(mark);
    let touched = file.and_then(|file| Ok(futimens(file, &times)?));
    touched.with_context(|| format!("the backup is complete, but not INTAKE_BACKUP_MARK: {}", mark.display()))
}

fn text(backup: &Path, command: &str) -> String {
    format!(
        "The backup is {}.\n\nTo restore it into an empty folder:\n\n    {command}\n\n\
         Its file README says what to keep beside it.",
        backup.display()
    )
}

fn write_record(backend: &Backend, path: &Path) -> anyhow::Result<()> {
    let about = || path.display().to_string();
    let mut output = BufWriter::new(folder::create(path, folder::PRIVATE)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let database = Database::new(&backend.owner, DEADLINE);
    let written = runtime.block_on(audit::write_whole(&database, &mut output, about));
    runtime.shutdown_background();
    written.context("the audit log cannot be copied")?;
    output.into_inner().map_err(IntoInnerError::into_error).and_then(|file| file.sync_all()).with_context(about)
}

fn advise(error: BaseBackupError, role: &str) -> anyhow::Error {
    match &error {
        BaseBackupError::Failed(said) if said.contains("replication") => anyhow!(
            "{error}: as PostgreSQL's superuser, `ALTER ROLE {role} REPLICATION`, and allow that in pg_hba.conf"
        ),
        _ => error.into(),
    }
}
