//! A file that appears under its name when it is complete and on disk, and not before.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Write};
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
        let unfinished = unfinished(&path);
        // Patients are nobody else's business.
        let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&unfinished);
        let file = opened.with_context(|| format!("{option}: {}", unfinished.display()))?;
        if file.try_lock().is_err() {
            bail!("{option}: another run is writing {}", unfinished.display());
        }
        file.set_len(0).with_context(|| format!("{option}: {}", unfinished.display()))?;
        Ok(Self { option, path, unfinished, writer: BufWriter::new(file) })
    }

    pub(crate) fn write(&mut self, text: &str) -> anyhow::Result<()> {
        self.writer.write_all(text.as_bytes()).with_context(|| self.unfinished.display().to_string())
    }

    /// The earlier file of this name, which the end replaces.
    pub(crate) fn replaced(&self) -> Option<PathBuf> {
        self.path.exists().then(|| self.path.clone())
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

/// Replaces a file by one with this text.
pub(crate) fn replace(option: &'static str, path: &Path, text: &str) -> anyhow::Result<()> {
    let mut file = UnfinishedFile::create(option, path.to_owned())?;
    file.write(text)?;
    file.finish()
}

/// The text of a file, if there is one.
pub(crate) fn read_if_there(path: &Path) -> std::io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Returns where a file is written before it appears.
pub(crate) fn unfinished(path: &Path) -> PathBuf {
    let mut unfinished = OsString::from(path);
    unfinished.push(".unfinished");
    unfinished.into()
}

/// Returns where a file of this name appears: where a link leads, and never in place of a device or a folder.
pub(crate) fn regular_file(option: &str, path: &Path) -> anyhow::Result<PathBuf> {
    let name = || format!("{option}: {}", path.display());
    match fs::symlink_metadata(path) {
        Err(_) => Ok(path.to_owned()),
        Ok(found) if found.is_file() => Ok(path.to_owned()),
        Ok(found) if found.is_symlink() => {
            let target = fs::canonicalize(path).with_context(name)?;
            if target.is_file() { Ok(target) } else { bail!("{} does not lead to a regular file", name()) }
        }
        Ok(_) => bail!("{} is not a regular file", name()),
    }
}
