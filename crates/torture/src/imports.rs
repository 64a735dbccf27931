//! A file that `intake-import` imports, and what its report says.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use intake_domain::Field;
use serde_json::Value;
use uuid::Uuid;

use crate::journal::Journal;
use crate::people::patient;
use crate::test_bed::TestBed;

/// Rows of a file.
const ROWS: usize = 40;

/// A file, and the report of its import.
pub(crate) struct Import {
    program: PathBuf,
    file: PathBuf,
    report: PathBuf,
    key_file: PathBuf,
    pub(crate) organisation: Uuid,
    /// The numbers of its rows.
    pub(crate) numbers: Vec<u64>,
}

/// Returns why nothing can be imported on this machine, if so.
pub(crate) fn is_missing(program: &Path) -> Option<&'static str> {
    (!beside(program).exists())
        .then_some("intake-import is not beside the program: cargo build --package intake-import")
}

impl Import {
    /// Writes the next file, for the first clinic.
    pub(crate) fn write(
        bed: &TestBed,
        program: &Path,
        number: usize,
        next_patient: impl Fn() -> u64,
    ) -> anyhow::Result<Option<Self>> {
        let Some((clinic, keys)) = bed.clinics.first() else { return Ok(None) };
        let folder = bed.folder.join(format!("import-{number}"));
        fs::create_dir(&folder)?;
        // Only what has no value in any field that a table could not tell from an empty one.
        let mut numbers = Vec::new();
        while numbers.len() < ROWS {
            numbers.extend(Some(next_patient()).filter(|number| number.is_multiple_of(3)));
        }
        let import = Self {
            program: beside(program),
            file: folder.join("patients.csv"),
            report: folder.join("report.csv"),
            key_file: folder.join("key"),
            organisation: *clinic.organisation.as_uuid(),
            numbers,
        };
        fs::write(&import.key_file, keys.first().context("a key")?.expose())?;
        let mut table = Field::ALL.iter().copied().map(Field::name).collect::<Vec<_>>().join(",");
        for patient in import.numbers.iter().map(|number| patient(*number)) {
            let cell = |field: Field| match patient.get(field.name()).and_then(Value::as_str) {
                Some(text) => format!("\"{}\"", text.replace('"', "\"\"")),
                None => String::new(),
            };
            write!(table, "\n{}", Field::ALL.iter().copied().map(cell).collect::<Vec<_>>().join(","))?;
        }
        fs::write(&import.file, table)?;
        Ok(Some(import))
    }

    /// Starts a run of the program, which sends to this service.
    pub(crate) fn start(&self, bed: &TestBed, instance: usize) -> anyhow::Result<Child> {
        let (address, authority) = bed.listener(instance)?;
        let mut command = Command::new(&self.program);
        command.arg(&self.file).args(["--url", &format!("https://{address}"), "--key-file"]).arg(&self.key_file);
        command.arg("--cacert").arg(authority).arg("--report").arg(&self.report);
        Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?)
    }

    /// Writes into the journal what the report says.
    pub(crate) fn note(&self, journal: &Journal) -> anyhow::Result<()> {
        let report = fs::read_to_string(&self.report)?;
        for line in report.lines().skip(1) {
            let mut cells = line.split(',');
            let row: usize = cells.next().context("a row")?.parse().with_context(|| line.to_owned())?;
            // The header is row 1.
            let number = self.numbers.get(row.wrapping_sub(2)).context("the report has a row that the file has not")?;
            match (cells.next(), cells.next()) {
                (Some("created"), Some(id)) => journal.created(*number, self.organisation, id, "-"),
                _ => journal.wrong(*number, line),
            }
        }
        Ok(())
    }

    /// Imports the file once more with the same report, after the register was restored to an earlier moment. If the
    /// program says that the report is of no use, without one.
    pub(crate) fn repeat(&self, bed: &TestBed, journal: &Journal) -> anyhow::Result<()> {
        self.numbers.iter().for_each(|number| journal.forgotten(*number));
        if self.start(bed, 0)?.wait()?.success() {
            return self.note(journal);
        }
        fs::remove_file(&self.report)?;
        let mut again = self.start(bed, 1)?;
        anyhow::ensure!(again.wait()?.success(), "an import fails after a restore: {}", said(&mut again));
        self.note(journal)
    }
}

pub(crate) fn said(run: &mut Child) -> String {
    run.stderr.take().map(std::io::read_to_string).and_then(Result::ok).unwrap_or_default()
}

fn beside(program: &Path) -> PathBuf {
    program.with_file_name("intake-import")
}
