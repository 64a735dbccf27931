//! The random secret from which idempotency keys are made: without it, nobody can compute a person's key from what they
//! know of the person. It stays in the folder of the imported file, so that any later run there makes the same keys,
//! and a copy stays beside the report, so that a run which goes on with a report notices another secret.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// The name of the secret's file in the folder of the imported file.
const NAME: &str = "intake-import.secret";
const BYTES: usize = 32;
const OTHERS: u32 = 0o077;

/// The secret of all imports from one folder.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret([u8; BYTES]);

impl Secret {
    /// The secret for this file and report. The first run makes it; it is on disk when this returns. Fails where the
    /// report's rows were created with another secret, or with one that is lost.
    pub(crate) fn keep(file: &Path, report: Option<&Path>, has_report_created: bool) -> anyhow::Result<Self> {
        let folder = fs::canonicalize(file).with_context(|| file.display().to_string())?;
        let in_folder = folder.with_file_name(NAME);
        let Some(beside_report) = report.map(beside) else { return stored(&in_folder, None) };
        let of_report = read(&beside_report).with_context(|| secret_in(&beside_report))?;
        if has_report_created && of_report.is_none() {
            bail!(
                "the secret with which the report's rows were created is lost: {}: bring it back, or take the rows that the \
                 report lists as created out of the file and choose another --report",
                beside_report.display()
            );
        }
        let of_folder = stored(&in_folder, of_report.as_ref())?;
        if of_report.is_some_and(|of_report| of_report != of_folder) {
            bail!(
                "the report's rows were created with another secret than that in {}: move the file that is imported to the \
                 folder where the report was started, or to an empty one",
                in_folder.display()
            );
        }
        stored(&beside_report, Some(&of_folder))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn random() -> anyhow::Result<Self> {
        let mut bytes = [0; BYTES];
        #[expect(clippy::disallowed_methods, reason = "a program of its own is its own edge")]
        getrandom::fill(&mut bytes)
            .map_err(|error| anyhow::anyhow!("the random generator of the system failed: {error}"))?;
        Ok(Self(bytes))
    }

    fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn from_hex(text: &str) -> Option<Self> {
        let digits = text.strip_suffix('\n')?;
        if digits.len() != 2 * BYTES || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = [0; BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

/// Returns where the report's copy is.
fn beside(report: &Path) -> PathBuf {
    let mut name = report.as_os_str().to_owned();
    name.push(".secret");
    name.into()
}

/// The secret in this file. If the file has none, writes the given one, or a new one.
fn stored(path: &Path, wanted: Option<&Secret>) -> anyhow::Result<Secret> {
    let found = read(path).and_then(|found| found.map_or_else(|| write(path, wanted), Ok));
    found.with_context(|| secret_in(path))
}

fn secret_in(path: &Path) -> String {
    format!("the import's secret {}", path.display())
}

fn read(path: &Path) -> anyhow::Result<Option<Secret>> {
    match File::open(path) {
        Ok(file) => read_locked(&file),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// None: the program was killed before it had written one. Then nothing was sent, because a secret is on disk before
/// the first request.
fn read_locked(mut file: &File) -> anyhow::Result<Option<Secret>> {
    let is_file = file.metadata()?.is_file();
    if is_file && file.metadata()?.permissions().mode() & OTHERS != 0 {
        bail!("other accounts may read it: chmod 600");
    }
    // Another import may be writing it.
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    if text.is_empty() {
        return Ok(None);
    }
    Secret::from_hex(&text).context("is damaged: bring it back from a backup").map(Some)
}

fn write(path: &Path, wanted: Option<&Secret>) -> anyhow::Result<Secret> {
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    let mut file =
        opened.context("cannot be written: put the file that is imported into a folder where you may write")?;
    if let Some(other) = read_locked(&file)? {
        return Ok(other);
    }
    let secret = wanted.cloned().map_or_else(Secret::random, Ok)?;
    file.write_all(format!("{}\n", secret.to_hex()).as_bytes())?;
    file.sync_all()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(secret)
}

#[cfg(test)]
impl From<[u8; BYTES]> for Secret {
    fn from(bytes: [u8; BYTES]) -> Self {
        Self(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_written_as_text_and_read_back() {
        let secret = Secret::from(std::array::from_fn(|number| 8 * u8::try_from(number).unwrap() + 7));
        assert!(Secret::from_hex(&format!("{}\n", secret.to_hex())) == Some(secret.clone()));
        for damaged in [secret.to_hex(), secret.to_hex() + "0\n", "\n".to_owned(), "+1".repeat(BYTES) + "\n"] {
            assert!(Secret::from_hex(&damaged).is_none(), "{damaged:?}");
        }
    }
}
