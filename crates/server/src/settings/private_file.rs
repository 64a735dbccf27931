//! Files that hold secrets: readable by their owner alone, and never half written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, ensure};

/// Longer than any secret.
const SECRET_MAX: u64 = 4_096;

/// Writes the file under another name and then renames it.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    let _ = fs::remove_file(&unfinished);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(unfinished, path)
}

/// The secret in a file: one line.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let file = File::open(path).context("cannot be read")?;
    file.take(SECRET_MAX).read_to_string(&mut text).context("cannot be read")?;
    let secret = text.trim();
    ensure!(!secret.is_empty() && secret.lines().count() == 1, "must hold the secret in one line");
    Ok(secret.to_owned())
}
