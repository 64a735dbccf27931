//! The folder of the backups: one backup at a time is made in it, under a name that says that it is unfinished.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, DirEntry, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use intake_edge::now;
use intake_infra::embedded::give;
use rustix::process::geteuid;
use time::macros::format_description;

const START: &str = "intake-";
const UNFINISHED: &str = ".unfinished";
const LOCK: &str = "lock";
/// Mode of a file that only this account may read.
pub(super) const PRIVATE: u32 = 0o600;

pub(super) struct Folder {
    path: PathBuf,
    /// Held while a backup is made, also by the program that copies the data.
    lock: File,
    pub(super) is_new: bool,
}

impl Folder {
    /// Makes the folder if it is not there, unless a backup must be in it.
    pub(super) fn open(path: &Path, has_backup: bool) -> anyhow::Result<Self> {
        let about = || path.display().to_string();
        let is_new = !fs::exists(path).map_err(|error| advise(error, path))?;
        if !has_backup {
            DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| advise(error, path))?;
        }
        if fs::metadata(path).map_err(|error| advise(error, path))?.mode() & 0o077 != 0 {
            bail!("{}: other accounts can enter it: chmod 700 it, because backups hold patients", path.display());
        }
        let path = path.canonicalize().with_context(about)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(PRIVATE).open(path.join(LOCK));
        let lock = lock.map_err(|error| advise(error, &path))?;
        if lock.try_lock().is_err() {
            bail!("{}: another backup is being made or tried there", path.display());
        }
        Ok(Self { path, lock, is_new })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn lock(&self) -> &File {
        &self.lock
    }

    /// The newest complete backup.
    pub(super) fn newest(&self) -> anyhow::Result<PathBuf> {
        self.complete()?.pop().with_context(|| format!("{}: there is no complete backup", self.path.display()))
    }

    /// Makes the folder of a backup, and deletes what backups that were killed have left.
    pub(super) fn begin_backup(&mut self) -> anyhow::Result<PathBuf> {
        for left in self.named(|name| name.ends_with(UNFINISHED))? {
            fs::remove_dir_all(&left).with_context(|| left.display().to_string())?;
        }
        let number = self.complete()?.last().map_or(0, |newest| number(newest)) + 1;
        let moment = now().format(format_description!("[year]-[month]-[day]T[hour][minute][second]Z"))?;
        let unfinished = self.path.join(format!("{START}{number:06}-{moment}{UNFINISHED}"));
        DirBuilder::new().mode(0o700).create(&unfinished).with_context(|| unfinished.display().to_string())?;
        Ok(unfinished)
    }

    /// Gives a backup its name. What is in it must be on disk.
    pub(super) fn finish_backup(&self, unfinished: &Path) -> anyhow::Result<PathBuf> {
        let name = unfinished.to_string_lossy();
        let complete = PathBuf::from(name.trim_end_matches(UNFINISHED));
        let finish = || {
            File::open(unfinished)?.sync_all()?;
            fs::rename(unfinished, &complete)?;
            File::open(&self.path)?.sync_all()
        };
        let finished: io::Result<()> = { finish }();
        finished.with_context(|| complete.display().to_string())?;
        Ok(complete)
    }

    /// Gives a backup of root's to the account that owns the folder, which will delete it some day.
    pub(super) fn give(&self, backup: &Path) -> anyhow::Result<()> {
        if !geteuid().is_root() {
            return Ok(());
        }
        let owner = fs::metadata(&self.path).with_context(|| self.path.display().to_string())?;
        for path in [backup, &self.path.join(LOCK)] {
            give(path, (owner.uid(), owner.gid())).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }

    /// Deletes older backups; returns which.
    pub(super) fn delete_all_but(&self, count: usize) -> anyhow::Result<Vec<PathBuf>> {
        let mut backups = self.complete()?;
        backups.truncate(backups.len().saturating_sub(count));
        for backup in &backups {
            // What is half deleted must not look complete.
            let unfinished = PathBuf::from(format!("{}{UNFINISHED}", backup.display()));
            let deleted = fs::rename(backup, &unfinished).and_then(|()| fs::remove_dir_all(&unfinished));
            deleted.with_context(|| backup.display().to_string())?;
        }
        Ok(backups)
    }

    /// The complete backups, the oldest first.
    fn complete(&self) -> anyhow::Result<Vec<PathBuf>> {
        self.named(|name| !name.ends_with(UNFINISHED))
    }

    fn named(&self, is_wanted: impl Fn(&str) -> bool) -> anyhow::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(&self.path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = entries.with_context(|| self.path.display().to_string())?;
        let is_backup = |entry: &&DirEntry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with(START) && is_wanted(&name)
        };
        let mut found: Vec<_> = entries.iter().filter(is_backup).map(DirEntry::path).collect();
        found.sort_by_key(|backup| number(backup));
        Ok(found)
    }
}

/// The number of a backup, which says which is newer: a clock can have been wrong.
fn number(backup: &Path) -> u64 {
    let name = backup.file_name().and_then(OsStr::to_str).and_then(|name| name.strip_prefix(START));
    name.and_then(|name| name.split('-').next()?.parse().ok()).unwrap_or_default()
}

fn advise(error: io::Error, folder: &Path) -> anyhow::Error {
    let folder = folder.display();
    match error.kind() {
        ErrorKind::PermissionDenied => {
            anyhow!("{folder}: this account may not use it: run the command as root or as the account that owns it")
        }
        ErrorKind::NotFound => anyhow!("{folder}: there is no complete backup"),
        _ => anyhow!(error).context(folder.to_string()),
    }
}

/// Writes a file of a backup, which is then on disk.
pub(super) fn write(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let mut file = create(path, mode)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).with_context(|| path.display().to_string())
}

/// Makes a file of a backup.
pub(super) fn create(path: &Path, mode: u32) -> anyhow::Result<File> {
    let created = OpenOptions::new().create_new(true).write(true).mode(mode).open(path);
    created.with_context(|| path.display().to_string())
}
