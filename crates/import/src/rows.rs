//! The rows of a file, one by one: never more than one of them is in memory here.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail};
use intake_domain::{ByField, Field, JsonError, JsonPatient, Sent, UnknownField};

use crate::arguments::Mapping;
use crate::columns::{Columns, OF_THE_REGISTER, header_texts};

/// The longest row. The service takes bodies of 64 KiB, and no field is longer than some hundred characters; what is longer
/// than this is a quotation mark that does not end.
const ROW_BYTES_MAX: u64 = 1 << 20;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// What marks a text that a spreadsheet would take for a formula, in the files of `intake export`.
const NO_FORMULA: char = '\'';

/// What the file has for each field; none where it has nothing.
pub(crate) type Texts = ByField<Option<String>>;

/// A row of the file.
pub(crate) struct Row {
    /// Its number as a spreadsheet shows it: the header is row 1. In JSON lines, the line.
    pub(crate) number: u64,
    /// How much of the file is read with it, in bytes.
    pub(crate) end: u64,
    /// Its texts, or why it cannot be read.
    pub(crate) texts: Result<Texts, String>,
}

/// A file of patients.
pub(crate) struct Rows {
    source: Source,
    /// The number of the last row.
    number: u64,
    read: Arc<AtomicU64>,
    /// The size of the file in bytes.
    pub(crate) size: u64,
}

enum Source {
    Csv { reader: Box<csv::Reader<Counted>>, columns: Columns, record: csv::ByteRecord },
    JsonLines(BufReader<Counted>),
}

/// Counts what is read, and stops where a row is too long.
struct Counted {
    file: File,
    read: Arc<AtomicU64>,
    row_began: u64,
}

impl Rows {
    /// Opens a file, which is read from its beginning.
    pub(crate) fn open(path: &Path, mappings: &[Mapping], delimiter: u8) -> anyhow::Result<Self> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        skip_byte_order_mark(&mut file)?;
        let read = Arc::new(AtomicU64::new(0));
        let counted = Counted { file, read: Arc::clone(&read), row_began: 0 };
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let (source, number) = match extension.as_str() {
            "csv" => {
                let mut builder = csv::ReaderBuilder::new();
                let mut reader = builder.delimiter(delimiter).flexible(true).from_reader(counted);
                let header = reader.byte_headers().context("the header cannot be read")?.clone();
                let columns = Columns::read(header_texts(&header)?.into_iter(), mappings)?;
                (Source::Csv { reader: Box::new(reader), columns, record: csv::ByteRecord::new() }, 1)
            }
            "jsonl" | "ndjson" if mappings.is_empty() => (Source::JsonLines(BufReader::new(counted)), 0),
            "jsonl" | "ndjson" => bail!("--map is for .csv files; in JSON lines the members have the names of fields"),
            _ => bail!("its name must end in .csv or .jsonl"),
        };
        Ok(Self { source, number, read, size })
    }

    /// The next row; none after the last one.
    pub(crate) fn next(&mut self) -> io::Result<Option<Row>> {
        let texts = match &mut self.source {
            Source::Csv { reader, columns, record } => {
                reader.get_mut().row_began = reader.position().byte();
                if !reader.read_byte_record(record)? {
                    return Ok(None);
                }
                self.number += 1;
                csv_texts(record, columns)
            }
            Source::JsonLines(reader) => loop {
                reader.get_mut().row_began = self.read.load(Ordering::Relaxed);
                let mut json = Vec::new();
                if reader.read_until(b'\n', &mut json)? == 0 {
                    return Ok(None);
                }
                self.number += 1;
                match json_texts(json.trim_ascii()) {
                    Ok(None) => {}
                    Ok(Some(texts)) => break Ok(texts),
                    Err(why) => break Err(why),
                }
            },
        };
        Ok(Some(Row { number: self.number, end: self.read.load(Ordering::Relaxed), texts }))
    }
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let before = self.read.load(Ordering::Relaxed);
        if before.saturating_sub(self.row_began) > ROW_BYTES_MAX {
            return Err(io::Error::other("a row is longer than 1 MiB: is there a quotation mark that does not end?"));
        }
        let read = self.file.read(buffer)?;
        self.read.store(before + read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

fn skip_byte_order_mark(file: &mut File) -> anyhow::Result<()> {
    let mut beginning = Vec::new();
    file.by_ref().take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut beginning)?;
    if beginning.starts_with(b"\xff\xfe") || beginning.starts_with(b"\xfe\xff") {
        bail!("it is UTF-16: save it as UTF-8");
    }
    if beginning != BYTE_ORDER_MARK {
        file.rewind()?;
    }
    Ok(())
}

fn csv_texts(record: &csv::ByteRecord, columns: &Columns) -> Result<Texts, String> {
    if record.len() != columns.count() {
        return Err(format!("has {} cells, and the header has {}", record.len(), columns.count()));
    }
    let mut texts = Texts::default();
    for (field, cell) in columns.fields().zip(record) {
        let (Some(field), false) = (field, cell.is_empty()) else { continue };
        let text = std::str::from_utf8(cell).map_err(|_| format!("{} is not UTF-8", field.name()))?;
        let text = if columns.are_exported { text.strip_prefix(NO_FORMULA).unwrap_or(text) } else { text };
        texts[field] = Some(text.to_owned());
    }
    Ok(texts)
}

/// The texts of a patient as JSON; none where the line holds no patient.
fn json_texts(json: &[u8]) -> Result<Option<Texts>, String> {
    if json.is_empty() {
        return Ok(None);
    }
    let JsonPatient { draft, unknown } = JsonPatient::from_slice(json).map_err(|error| match error {
        // Each line is a JSON of its own.
        JsonError::Malformed { column, .. } => format!("is not valid JSON: error at character {column}"),
        error => error.to_string(),
    })?;
    if unknown.iter().any(|name| name == "erasedAt") {
        return Ok(None);
    }
    if let Some(name) = unknown.iter().find(|name| !OF_THE_REGISTER.contains(&name.as_ref())) {
        return Err(UnknownField::new(name.as_ref()).to_string());
    }
    let mut texts = Texts::default();
    for field in Field::ALL {
        match &draft[field] {
            Sent::Nothing => {}
            Sent::NotText => return Err(format!("{} must be a string", field.name())),
            Sent::Text(text) => texts[field] = Some(text.as_ref().to_owned()),
        }
    }
    Ok(Some(texts))
}
