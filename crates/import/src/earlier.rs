//! What earlier runs have created, as their report lists it, and whether the register still has it.
//!
//! A restored register has everything that was committed up to a moment, and nothing since. Rows are committed in the
//! order of the report, except those that were sent at the same time. So if the register has the last row that a run
//! created, it has all rows before that one, except perhaps the last few, which the program sends again to find out. A
//! row that was in the register before its run says nothing about others.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::Seek as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::arguments::IN_FLIGHT_MAX;
use crate::once::fingerprint;
use crate::sender::Sent;

/// The columns of a report.
const HEADER: [&str; 7] = ["row", "outcome", "id", "idempotencyKey", "message", "apiKey", "organisationId"];
pub(crate) const CREATED: &str = "created";
/// The beginning of the message of a row that was in the register before the run.
pub(crate) const CREATED_BEFORE: &str = "created by an earlier run";
/// The most rows that are sent again to find out. If there are more, all rows are sent again.
const TAIL_MAX: usize = 1_000;

const UUID_LENGTH: usize = 36;

/// Rows that earlier runs have created.
pub(crate) struct Earlier {
    /// Eight bytes of each row's key, sorted, and whether the file contained the row.
    rows: Vec<(u64, bool)>,
    /// The rows that are sent again to find out whether the register has all, with their ids.
    tail: HashMap<u64, String>,
    /// The last row that a run created.
    last: Option<u64>,
    has_met_one: bool,
    organisation: String,
    register: Register,
    /// A row that was created to find out.
    created_again: Option<u64>,
    path: PathBuf,
    /// The report as it was, locked during this run, so that no other run begins.
    file: File,
}

/// Evidence that the register has the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Register {
    HasLast,
    NotAsked,
    MayHaveLostSome,
}

impl Earlier {
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
        let file = opened?;
        if !file.metadata()?.is_file() {
            bail!("it must be a file");
        }
        lock(&file)?;
        let (mut rows, mut tail, mut last, mut organisation) = (Vec::new(), VecDeque::new(), None, String::new());
        for record in created(&file)? {
            let record = record?;
            let (Some(id), Some(row), Some(message)) =
                (record.get(2), record.get(3).and_then(fingerprint), record.get(4))
            else {
                continue;
            };
            rows.push((row, false));
            if !message.starts_with(CREATED_BEFORE) {
                last = Some(row);
                // Each of those before them was answered before this one was sent.
                tail.drain(..tail.len().saturating_sub(usize::from(IN_FLIGHT_MAX) - 1));
            } else if tail.len() >= TAIL_MAX {
                tail.pop_front();
                last = None;
            }
            tail.push_back((row, id.to_owned()));
            record.get(6).unwrap_or_default().clone_into(&mut organisation);
        }
        rows.sort_unstable();
        rows.dedup();
        // Without a last row these rows say nothing about the others.
        let tail = if last.is_some() { tail.into_iter().collect() } else { HashMap::new() };
        let (register, path) = (Register::NotAsked, path.to_owned());
        Ok(Self { rows, tail, last, has_met_one: false, organisation, register, created_again: None, path, file })
    }

    /// Fails if something was created with another API key, and nothing with this one.
    pub(crate) fn expect_api_key(&self, api_key: &str) -> anyhow::Result<()> {
        let mut other = None;
        for record in created(&self.file)? {
            match record?.get(5) {
                Some(known) if known == api_key => return Ok(()),
                Some(known) => other = Some(known.to_owned()),
                None => {}
            }
        }
        if let Some(other) = other {
            bail!(
                "it was written with the API key that {other}, and this one {api_key}: if both are of the same organisation, \
                 say so with --key-replaced, else choose another --report"
            );
        }
        Ok(())
    }

    /// Returns whether nothing was created.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The report, if it was written for another organisation.
    pub(crate) fn of_other_organisation(&self, organisation: &str) -> Option<&Path> {
        (self.organisation != organisation).then_some(&self.path)
    }

    /// Notes that the row of this key is in the file. True if it has to be sent to find out what the register has.
    pub(crate) fn meet(&mut self, key: &str) -> bool {
        let Some(row) = fingerprint(key) else { return false };
        let Ok(place) = self.rows.binary_search_by_key(&row, |(known, _)| *known) else { return false };
        if let Some((_, is_met)) = self.rows.get_mut(place) {
            *is_met = true;
        }
        // The first one, to see whose report it is.
        let is_first = !std::mem::replace(&mut self.has_met_one, true);
        self.register != Register::MayHaveLostSome && (is_first || self.tail.contains_key(&row))
    }

    /// Compares what became of a row that was met with what the report lists. True where the register has lost it.
    pub(crate) fn compare(&mut self, key: &str, sent: &Sent) -> bool {
        let Some(row) = fingerprint(key) else { return false };
        let is_lost = match sent {
            Sent::Created { id, is_replayed, .. } => {
                !is_replayed || self.tail.get(&row).is_some_and(|known| known != id)
            }
            Sent::Refused { .. } => false,
        };
        if let Sent::Created { is_replayed: false, .. } = sent {
            self.created_again = Some(row);
        }
        let is_uncertain = is_lost || matches!(sent, Sent::Refused { is_key_known: false, .. });
        if is_uncertain {
            self.register = Register::MayHaveLostSome;
        } else if self.last == Some(row) {
            self.register = Register::HasLast;
        }
        is_lost
    }

    /// Returns whether the row of this key was created, and is in the register as far as anyone can tell.
    pub(crate) fn has_created(&self, key: &str) -> bool {
        let row = fingerprint(key);
        let is_known = |row: u64| self.rows.binary_search_by_key(&row, |(known, _)| *known).is_ok();
        self.register == Register::HasLast && row.is_some_and(is_known)
    }

    /// Returns whether this run itself has created the row of this key, to find out whether the register had lost it.
    pub(crate) fn has_created_again(&self, key: &str) -> bool {
        self.created_again.is_some() && self.created_again == fingerprint(key)
    }

    /// Begins the report again with what was created and is not sent again.
    pub(crate) fn write_again(&self) -> anyhow::Result<csv::Writer<File>> {
        let beside = beside(&self.path);
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600).open(&beside);
        let file = file.with_context(|| beside.display().to_string())?;
        lock(&file)?;
        // A file from an earlier run may have any permissions.
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.set_len(0)?;
        let mut writer = csv::Writer::from_writer(file);
        writer.write_record(HEADER)?;
        for record in created(&self.file)? {
            let record = record?;
            if !self.is_sent_again(&record) {
                writer.write_byte_record(record.as_byte_record())?;
            }
        }
        writer.flush()?;
        writer.get_ref().sync_all()?;
        fs::rename(&beside, &self.path)?;
        Ok(writer)
    }

    fn is_sent_again(&self, record: &csv::StringRecord) -> bool {
        let row = record.get(3).and_then(fingerprint);
        let place = row.and_then(|row| self.rows.binary_search_by_key(&row, |(known, _)| *known).ok());
        let is_met = place.and_then(|place| self.rows.get(place)).is_some_and(|(_, is_met)| *is_met);
        is_met && self.register != Register::HasLast
    }
}

/// Keeps other runs from the report.
fn lock(file: &File) -> anyhow::Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => bail!("another import is writing it"),
        Err(TryLockError::Error(error)) => Err(error).context("it cannot be locked"),
    }
}

/// Returns what a report says was created. The last record is cut short if the program was killed.
fn created(mut file: &File) -> anyhow::Result<impl Iterator<Item = anyhow::Result<csv::StringRecord>>> {
    file.rewind()?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(file);
    let header = reader.headers()?;
    if !header.is_empty() && header != HEADER.as_slice() {
        bail!("it is another kind of file, and is not written over");
    }
    let records = reader.into_records().map(|record| Ok(record?));
    Ok(records.filter(|record: &anyhow::Result<csv::StringRecord>| match record {
        Ok(record) => {
            record.len() == HEADER.len()
                && record.get(1) == Some(CREATED)
                && record.get(6).is_some_and(|organisation| organisation.len() == UUID_LENGTH)
        }
        Err(_) => true,
    }))
}

/// Returns where the report is written before it takes its name.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}
