//! The report: a CSV file that says of each row whether it was created, under which id, or why not. It holds no patient's
//! values. A later run with the same report skips what it says is created.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Seek as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::arguments::Arguments;
use crate::once::fingerprint;
use crate::sender::Sender;

const HEADER: [&str; 6] = ["row", "outcome", "id", "idempotencyKey", "message", "apiKey"];
const CREATED: &str = "created";
const REFUSED: &str = "refused";
/// So many refused rows are told on the terminal where there is no report.
const TOLD_MAX: u64 = 20;

/// Where outcomes are written.
pub(crate) enum Report {
    File(Box<ReportFile>),
    /// Refused rows on the terminal; how many were told.
    Terminal {
        told: u64,
    },
}

/// A report that is being written, and locked meanwhile.
pub(crate) struct ReportFile {
    writer: csv::Writer<File>,
    path: PathBuf,
    /// By what people tell the API key from others.
    api_key: String,
}

/// What earlier runs have created, as their report says.
#[derive(Default)]
pub(crate) struct Earlier {
    /// Of each key eight bytes, in order.
    fingerprints: Vec<u64>,
    path: PathBuf,
    /// The report as it was, locked as long as this run goes on: another run that has opened it may not begin after all.
    file: Option<File>,
}

impl Report {
    /// Opens the report, and keeps of an earlier one what was created. Fails where that was created with other API keys,
    /// unless they are said to be of the same organisation.
    pub(crate) fn open(arguments: &Arguments, sender: Option<&Sender>) -> anyhow::Result<(Self, Earlier)> {
        let Some(path) = &arguments.report else { return Ok((Self::Terminal { told: 0 }, Earlier::default())) };
        let open = || {
            let earlier = Earlier::read(path)?;
            let api_key = sender.map_or("", Sender::key_hint).to_owned();
            if sender.is_some() && !arguments.key_replaced {
                earlier.expect_api_key(&api_key)?;
            }
            let report = ReportFile { writer: earlier.write_again()?, path: path.clone(), api_key };
            Ok::<_, anyhow::Error>((Self::File(Box::new(report)), earlier))
        };
        open().with_context(|| format!("--report {}", path.display()))
    }

    /// Notes a created row.
    pub(crate) fn created(&mut self, row: u64, id: &str, key: &str, message: &str) -> anyhow::Result<()> {
        self.write(&row.to_string(), [CREATED, id, key, message])
    }

    /// Notes a refused row. Gives the line for the terminal, where there is no file.
    pub(crate) fn refused(&mut self, row: u64, key: &str, why: &str) -> anyhow::Result<Option<String>> {
        if let Self::Terminal { told } = self {
            *told += 1;
            return Ok(match *told {
                ..=TOLD_MAX => Some(format!("row {row}: {why}")),
                told if told == TOLD_MAX + 1 => Some("more rows are refused: --report FILE lists them all".to_owned()),
                _ => None,
            });
        }
        self.write(&row.to_string(), [REFUSED, "", key, why])?;
        Ok(None)
    }

    fn write(&mut self, row: &str, [outcome, id, key, message]: [&str; 4]) -> anyhow::Result<()> {
        if let Self::File(report) = self {
            let ReportFile { writer, path, api_key } = report.as_mut();
            // Each row at once: who kills the program keeps what was done.
            let written = writer.write_record([row, outcome, id, key, message, api_key]);
            let written = written.map_err(anyhow::Error::from).and_then(|()| Ok(writer.flush()?));
            written.with_context(|| format!("--report {}", path.display()))?;
        }
        Ok(())
    }
}

impl Earlier {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        if !file.metadata()?.is_file() {
            bail!("it must be a file");
        }
        lock(&file)?;
        let mut fingerprints = Vec::new();
        for record in created(&file)? {
            fingerprints.extend(record?.get(3).and_then(fingerprint));
        }
        fingerprints.sort_unstable();
        fingerprints.dedup();
        Ok(Self { fingerprints, path: path.to_owned(), file: Some(file) })
    }

    /// Fails where nothing was created with this API key, but something with another one.
    fn expect_api_key(&self, api_key: &str) -> anyhow::Result<()> {
        let mut other = None;
        for record in self.records()? {
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

    /// Begins the report again with what was created.
    fn write_again(&self) -> anyhow::Result<csv::Writer<File>> {
        let beside = beside(&self.path);
        let file = File::create(&beside).with_context(|| beside.display().to_string())?;
        lock(&file)?;
        let mut writer = csv::Writer::from_writer(file);
        writer.write_record(HEADER)?;
        for record in self.records()? {
            writer.write_byte_record(record?.as_byte_record())?;
        }
        writer.flush()?;
        writer.get_ref().sync_all()?;
        fs::rename(&beside, &self.path)?;
        Ok(writer)
    }

    /// Whether nothing was created.
    pub(crate) fn is_empty(&self) -> bool {
        self.fingerprints.is_empty()
    }

    /// Whether the row of this key was created.
    pub(crate) fn has_created(&self, key: &str) -> bool {
        fingerprint(key).is_some_and(|fingerprint| self.fingerprints.binary_search(&fingerprint).is_ok())
    }

    /// The report, where it tells another id for this key than the service: then it is another organisation's, or another
    /// register's, and what it says was created was not created here.
    pub(crate) fn contradicting(&self, key: &str, id: &str) -> anyhow::Result<Option<&Path>> {
        for record in self.records()? {
            let record = record?;
            if record.get(3) == Some(key) && record.get(2) != Some(id) {
                return Ok(Some(&self.path));
            }
        }
        Ok(None)
    }

    fn records(&self) -> anyhow::Result<impl Iterator<Item = anyhow::Result<csv::StringRecord>>> {
        let records = self.file.as_ref().map(created).transpose()?;
        Ok(records.into_iter().flatten())
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

/// What a report says was created. The last record may be cut short, where a program was killed.
fn created(mut file: &File) -> anyhow::Result<impl Iterator<Item = anyhow::Result<csv::StringRecord>>> {
    file.rewind()?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(file);
    let header = reader.headers()?;
    if !header.is_empty() && header != HEADER.as_slice() {
        bail!("it is another kind of file, and is not written over");
    }
    let records = reader.into_records().map(|record| Ok(record?));
    Ok(records.filter(|record: &anyhow::Result<csv::StringRecord>| match record {
        Ok(record) => record.len() == HEADER.len() && record.get(1) == Some(CREATED),
        Err(_) => true,
    }))
}

/// Where the report is written before it takes its name.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}
