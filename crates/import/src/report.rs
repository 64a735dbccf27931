//! The report: a CSV file that says of each row whether it was created, under which id, or why not. It holds no patient's
//! values. A later run with the same report skips what it says is created.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::once::fingerprint;

const HEADER: [&str; 5] = ["row", "outcome", "id", "idempotencyKey", "message"];
const CREATED: &str = "created";
const REFUSED: &str = "refused";
/// So many refused rows are told on the terminal where there is no report.
const TOLD_MAX: u64 = 20;

/// Where outcomes are written.
pub(crate) enum Report {
    File(Box<csv::Writer<File>>),
    /// Refused rows on the terminal; how many were told.
    Terminal {
        told: u64,
    },
}

/// What earlier runs have created, as their report says.
#[derive(Default)]
pub(crate) struct Earlier {
    /// Of each key eight bytes, in order.
    fingerprints: Vec<u64>,
    path: PathBuf,
}

impl Report {
    /// Opens the report, and keeps of an earlier one what was created.
    pub(crate) fn open(path: Option<&Path>) -> anyhow::Result<(Self, Earlier)> {
        let Some(path) = path else { return Ok((Self::Terminal { told: 0 }, Earlier::default())) };
        let records = read(path)?;
        let beside = beside(path);
        let mut writer = csv::Writer::from_writer(File::create(&beside)?);
        writer.write_record(HEADER)?;
        let mut earlier = Earlier { fingerprints: Vec::new(), path: path.to_owned() };
        for record in records {
            let record = record?;
            let is_created = record.get(1) == Some(CREATED);
            if let (true, Some(fingerprint)) = (is_created, record.get(3).and_then(fingerprint)) {
                earlier.fingerprints.push(fingerprint);
                writer.write_byte_record(record.as_byte_record())?;
            }
        }
        earlier.fingerprints.sort_unstable();
        earlier.fingerprints.dedup();
        writer.flush()?;
        writer.get_ref().sync_all()?;
        fs::rename(&beside, path)?;
        Ok((Self::File(Box::new(writer)), earlier))
    }

    /// Notes a created row.
    pub(crate) fn created(&mut self, row: u64, id: &str, key: &str, message: &str) -> anyhow::Result<()> {
        self.write([&row.to_string(), CREATED, id, key, message])
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
        self.write([&row.to_string(), REFUSED, "", key, why])?;
        Ok(None)
    }

    fn write(&mut self, record: [&str; 5]) -> anyhow::Result<()> {
        if let Self::File(writer) = self {
            // Each row at once: who kills the program keeps what was done.
            writer.write_record(record).and_then(|()| Ok(writer.flush()?)).context("the report cannot be written")?;
        }
        Ok(())
    }
}

impl Earlier {
    /// Whether the row of this key was created.
    pub(crate) fn has_created(&self, key: &str) -> bool {
        fingerprint(key).is_some_and(|fingerprint| self.fingerprints.binary_search(&fingerprint).is_ok())
    }

    /// Fails where the report tells another id for this key than the service: then it is another organisation's, or
    /// another register's, and what it says was created was not created here.
    pub(crate) fn compare(&self, key: &str, id: &str) -> anyhow::Result<()> {
        for record in read(&self.path)? {
            let record = record?;
            if record.get(3) == Some(key) && record.get(1) == Some(CREATED) && record.get(2) != Some(id) {
                bail!("{} was written for another organisation: choose another --report", self.path.display());
            }
        }
        Ok(())
    }
}

/// The records of a report; none where there is no file. The last one may be cut short, where a program was killed.
fn read(path: &Path) -> anyhow::Result<impl Iterator<Item = anyhow::Result<csv::StringRecord>>> {
    let file = match File::open(path) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let mut reader = file.map(|file| csv::ReaderBuilder::new().flexible(true).from_reader(file));
    if let Some(reader) = &mut reader {
        let header = reader.headers()?;
        if !header.is_empty() && header != HEADER.as_slice() {
            bail!("it is another kind of file, and is not written over");
        }
    }
    let records = reader.into_iter().flat_map(csv::Reader::into_records);
    Ok(records.map(|record| Ok(record?)).filter(|record| match record {
        Ok(record) => record.len() == HEADER.len(),
        Err(_) => true,
    }))
}

/// Where the report is written before it takes its name.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}
