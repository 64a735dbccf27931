//! Where an export goes: standard output, or files that appear when they are complete and on disk. Erased patients have no
//! place among the patients of csv and fhir: they get a file of their own, or without a file a line on standard error.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Stdout, Write, stderr, stdout};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use intake_domain::{Change, Erasure, timestamp};

use super::{csv, fhir, jsonl};
use crate::command_line::{ExportArguments, Format};

/// The output of an export.
pub(crate) struct Output {
    format: Format,
    patients: Sink,
    /// None: with the patients, or on standard error.
    erasures: Option<Sink>,
}

enum Sink {
    Stream(BufWriter<Stdout>),
    File(UnfinishedFile),
}

impl Output {
    pub(crate) fn open(arguments: &ExportArguments) -> anyhow::Result<Self> {
        let format = arguments.format;
        let path = arguments.output.as_deref().filter(|path| *path != Path::new("-")).map(regular_file).transpose()?;
        let mut output = match &path {
            None => Self { format, patients: Sink::Stream(BufWriter::new(stdout())), erasures: None },
            Some(path) => {
                let erasures = match format {
                    Format::Jsonl => None,
                    Format::Csv => Some(beside(path, "erased")),
                    Format::Fhir => Some(beside(path, "deleted")),
                };
                let erasures = erasures.map(UnfinishedFile::create).transpose()?.map(Sink::File);
                Self { format, patients: Sink::File(UnfinishedFile::create(path.clone())?), erasures }
            }
        };
        if let Format::Csv = format {
            output.patients.write(&csv::head()?)?;
            if let Some(erasures) = &mut output.erasures {
                erasures.write(&csv::erasures_head()?)?;
            }
        }
        Ok(output)
    }

    /// Whether readers see what is written at once.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.patients, Sink::Stream(_))
    }

    pub(crate) fn write(&mut self, change: &Change) -> anyhow::Result<()> {
        match (change, self.format) {
            (Change::Stored(patient), Format::Jsonl) => self.patients.write(&jsonl::patient(patient)?),
            (Change::Stored(patient), Format::Csv) => self.patients.write(&csv::patient(patient)?),
            (Change::Stored(patient), Format::Fhir) => self.patients.write(&fhir::patient(patient)),
            (Change::Erased(erasure), Format::Jsonl) => self.patients.write(&jsonl::erasure(erasure)),
            (Change::Erased(erasure), Format::Csv) => match &mut self.erasures {
                Some(file) => file.write(&csv::erasure(erasure)?),
                None => say(erasure),
            },
            (Change::Erased(erasure), Format::Fhir) => match &mut self.erasures {
                Some(file) => file.write(&fhir::erasure(erasure)),
                None => say(erasure),
            },
        }
    }

    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        match &mut self.patients {
            Sink::Stream(stream) => stream.flush().context("the export cannot be written"),
            Sink::File(_) => Ok(()),
        }
    }

    /// Makes files appear. Nothing may be written afterwards.
    pub(crate) fn finish(&mut self) -> anyhow::Result<()> {
        // The patients last, because their file says that the export is complete.
        for sink in self.erasures.iter_mut().chain([&mut self.patients]) {
            if let Sink::File(file) = sink {
                file.finish()?;
            }
        }
        Ok(())
    }
}

impl Sink {
    fn write(&mut self, text: &str) -> anyhow::Result<()> {
        match self {
            Self::Stream(stream) => stream.write_all(text.as_bytes()).context("the export cannot be written"),
            Self::File(file) => {
                file.writer.write_all(text.as_bytes()).with_context(|| file.unfinished.display().to_string())
            }
        }
    }
}

/// Where a file of this name appears: where a link leads, and never in place of a device or a folder.
fn regular_file(path: &Path) -> anyhow::Result<PathBuf> {
    let name = || format!("--output: {}", path.display());
    match fs::symlink_metadata(path) {
        Err(_) => Ok(path.to_owned()),
        Ok(found) if found.is_file() => Ok(path.to_owned()),
        Ok(found) if found.is_symlink() => {
            let target = fs::canonicalize(path).with_context(name)?;
            if target.is_file() { Ok(target) } else { bail!("{} leads to something that is no file", name()) }
        }
        Ok(_) => bail!("{} is there and is no file", name()),
    }
}

/// A file that is written under another name, which a later export of the same name overwrites.
struct UnfinishedFile {
    path: PathBuf,
    unfinished: PathBuf,
    writer: BufWriter<File>,
}

impl UnfinishedFile {
    fn create(path: PathBuf) -> anyhow::Result<Self> {
        let mut unfinished = OsString::from(&path);
        unfinished.push(".unfinished");
        let unfinished = PathBuf::from(unfinished);
        // Patients are nobody else's business.
        let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&unfinished);
        let file = opened.with_context(|| format!("--output: {}", unfinished.display()))?;
        if file.try_lock().is_err() {
            bail!("--output: another export is writing {}", unfinished.display());
        }
        file.set_len(0)?;
        Ok(Self { path, unfinished, writer: BufWriter::new(file) })
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        let finish = || {
            self.writer.flush()?;
            self.writer.get_ref().sync_all()?;
            fs::rename(&self.unfinished, &self.path)?;
            // The new name is on disk when its folder is.
            let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        };
        let finished: std::io::Result<()> = { finish }();
        finished.with_context(|| format!("--output: {}", self.path.display()))
    }
}

/// The name of a file that belongs to another one: `patients.erased.csv` to `patients.csv`.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = OsString::from(path.file_stem().unwrap_or_default());
    name.push(".");
    name.push(what);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Among the patients there is no place for it.
fn say(erasure: &Erasure) -> anyhow::Result<()> {
    let line = format!("erased: {} {}\n", erasure.id, timestamp(erasure.erased_at));
    // Not by a macro, which would hide that nobody was told.
    stderr().write_all(line.as_bytes()).context("the erasure cannot be told")
}
