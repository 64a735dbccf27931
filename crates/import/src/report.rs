//! The report: a CSV file that says of each row whether it was created, under which id, or why not. It holds no
//! patient's values. A later run with the same report skips what it says is created.

use std::fs::{self, File};
use std::path::PathBuf;

use anyhow::Context;

use crate::arguments::Arguments;
use crate::check::RowTag;
use crate::earlier::{CREATED, Earlier};
use crate::sender::Sender;

const REFUSED: &str = "refused";
/// Outcome of a row in a check.
const VALID: &str = "valid";
/// Lines about rows that are printed on the terminal where there is no report.
const SHOWN_MAX: usize = 20;

/// Destination of outcomes.
pub(crate) enum Report {
    File(Box<ReportFile>),
    /// Lines about refused rows and dropped values, for the terminal.
    Terminal(Vec<String>),
}

/// A report that is being written, and locked meanwhile.
pub(crate) struct ReportFile {
    writer: csv::Writer<File>,
    path: PathBuf,
    /// The last characters of the API key, by which people recognise it.
    api_key: String,
}

/// A report that is to be written; a new file is empty.
pub(crate) struct OpenReport {
    path: PathBuf,
    api_key: String,
    pub(crate) earlier: Earlier,
}

impl OpenReport {
    /// Leaves no file behind where the run does not begin.
    pub(crate) fn discard_if_empty(&self) {
        if fs::metadata(&self.path).is_ok_and(|found| found.len() == 0) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Report {
    /// Opens the report, and reads in an earlier one what was created. Fails where that was created with other API
    /// keys, unless they are said to be of the same organisation.
    pub(crate) fn open(arguments: &Arguments, sender: Option<&Sender>) -> anyhow::Result<Option<OpenReport>> {
        let Some(path) = &arguments.report else { return Ok(None) };
        let open = || {
            let earlier = Earlier::read(path)?;
            let api_key = sender.map_or("", Sender::key_hint).to_owned();
            if sender.is_some() && !arguments.key_replaced {
                earlier.expect_api_key(&api_key)?;
            }
            Ok::<_, anyhow::Error>(OpenReport { path: path.clone(), api_key, earlier })
        };
        open().with_context(|| format!("--report {}", path.display())).map(Some)
    }

    /// Begins to write the report, again with what was created and is not sent again.
    pub(crate) fn begin(open: Option<&OpenReport>) -> anyhow::Result<Self> {
        let Some(OpenReport { path, api_key, earlier }) = open else { return Ok(Self::Terminal(Vec::new())) };
        let writer = earlier.write_again().with_context(|| format!("--report {}", path.display()))?;
        Ok(Self::File(Box::new(ReportFile { writer, path: path.clone(), api_key: api_key.clone() })))
    }

    /// Notes a created row.
    pub(crate) fn created(
        &mut self,
        tag: &RowTag,
        id: &str,
        organisation: &str,
        is_replayed: bool,
    ) -> anyhow::Result<()> {
        self.tell_dropped(tag);
        self.write(tag.row, [CREATED, id, &tag.key, &tag.notes(is_replayed), organisation])
    }

    /// Notes a row that a check found valid.
    pub(crate) fn valid(&mut self, tag: &RowTag) -> anyhow::Result<()> {
        self.tell_dropped(tag);
        self.write(tag.row, [VALID, "", "", &tag.notes(false), ""])
    }

    /// Notes a refused row.
    pub(crate) fn refused(&mut self, tag: &RowTag, faults: &[String]) -> anyhow::Result<()> {
        let why = faults.join("; ");
        self.tell(tag.row, &why);
        self.write(tag.row, [REFUSED, "", &tag.key, &why, ""])
    }

    /// The lines for the terminal, which the report has where there is one.
    pub(crate) fn lines(&self) -> &[String] {
        match self {
            Self::File(_) => &[],
            Self::Terminal(lines) => lines,
        }
    }

    fn tell_dropped(&mut self, tag: &RowTag) {
        for change in tag.dropped() {
            self.tell(tag.row, &change.to_string());
        }
    }

    fn tell(&mut self, row: u64, what: &str) {
        match self {
            Self::Terminal(lines) if lines.len() < SHOWN_MAX => lines.push(format!("row {row}: {what}")),
            Self::Terminal(lines) if lines.len() == SHOWN_MAX => {
                lines.push("more rows are refused, or values dropped: --report FILE lists them all".to_owned());
            }
            _ => {}
        }
    }

    fn write(&mut self, row: u64, [outcome, id, key, message, organisation]: [&str; 5]) -> anyhow::Result<()> {
        if let Self::File(report) = self {
            let ReportFile { writer, path, api_key } = report.as_mut();
            // Each row at once: who kills the program keeps what was done.
            let written = writer.write_record([&row.to_string(), outcome, id, key, message, api_key, organisation]);
            let written = written.map_err(anyhow::Error::from).and_then(|()| Ok(writer.flush()?));
            written.with_context(|| format!("--report {}", path.display()))?;
        }
        Ok(())
    }
}
