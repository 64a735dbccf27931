//! A file that appears under its name when it is complete and on disk, and not before.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// A file that is written under another name, which a later run for the same name overwrites.
pub(crate) struct UnfinishedFile {
    /// The option that names it.
    option: &'static str,
    path: PathBuf,
    unfinished: PathBuf,
    writer: BufWriter<File>,
}

impl UnfinishedFile {
    pub(crate) fn create(option: &'static str, path: PathBuf) -> anyhow::Result<Self> {
        let mut unfinished = OsString::from(&path);
        unfinished.push(".unfinished");
        let unfinished = PathBuf::from(unfinished);
        // Patients are nobody else's business.
        let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&unfinished);
        let file = opened.with_context(|| format!("{option}: {}", unfinished.display()))?;
        if file.try_lock().is_err() {
            bail!("{option}: another export is writing {}", unfinished.display());
        }
        file.set_len(0)?;
        Ok(Self { option, path, unfinished, writer: BufWriter::new(file) })
    }

    pub(crate) fn write(&mut self, text: &str) -> anyhow::Result<()> {
        self.writer.write_all(text.as_bytes()).with_context(|| self.unfinished.display().to_string())
    }

    /// Gives the file its name. Nothing may be written afterwards.
    pub(crate) fn finish(&mut self) -> anyhow::Result<()> {
        let finish = || {
            self.writer.flush()?;
            self.writer.get_ref().sync_all()?;
            fs::rename(&self.unfinished, &self.path)?;
            // The new name is on disk when its folder is.
            let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        };
        let finished: std::io::Result<()> = { finish }();
        finished.with_context(|| format!("{}: {}", self.option, self.path.display()))
    }
}
