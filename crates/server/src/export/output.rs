//! Where an export goes: standard output, or files that appear when they are complete and on disk. Erased patients have
//! no place among the patients of csv and fhir: they get a file of their own, or without a file a line on standard
//! error. A stream that is followed has everything in it, the tokens too, because its reader sees nothing else.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufWriter, Stdout, Write, stderr, stdout};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use intake_domain::{Change, Erasure, FeedToken, timestamp};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::unfinished_file::UnfinishedFile;
use super::{csv, fhir, jsonl};
use crate::settings::command_line::{ExportArguments, Format};

const OPTION: &str = "--output";

/// The output of an export.
pub(crate) struct Output {
    format: Format,
    /// True if everything is in one stream that goes on.
    is_followed: bool,
    patients: Sink,
    /// None: with the patients, or on standard error.
    erasures: Option<Sink>,
}

const UNWRITTEN: &str = "the export cannot be written";

enum Sink {
    Stream(BufWriter<Stdout>),
    File(UnfinishedFile),
}

impl Output {
    pub(crate) fn open(arguments: &ExportArguments) -> anyhow::Result<Self> {
        let format = arguments.format;
        let path = arguments.output.as_deref().filter(|path| *path != Path::new("-"));
        let path = path.map(|path| regular_file(OPTION, path)).transpose()?;
        let is_followed = arguments.follow && path.is_none();
        let mut output = match &path {
            None => Self { format, is_followed, patients: Sink::Stream(BufWriter::new(stdout())), erasures: None },
            Some(path) => {
                let erasures = match format {
                    Format::Jsonl => None,
                    Format::Csv => Some(beside(path, "erased")),
                    Format::Fhir => Some(beside(path, "deleted")),
                };
                let erasures = erasures.map(|path| UnfinishedFile::create(OPTION, path)).transpose()?.map(Sink::File);
                let patients = Sink::File(UnfinishedFile::create(OPTION, path.clone())?);
                Self { format, is_followed, patients, erasures }
            }
        };
        if let Format::Csv = format {
            output.patients.write(&csv::head(is_followed)?)?;
            if let Some(erasures) = &mut output.erasures {
                erasures.write(&csv::erasures_head()?)?;
            }
        }
        Ok(output)
    }

    /// Returns whether everything is in one stream that goes on.
    pub(crate) fn is_followed(&self) -> bool {
        self.is_followed
    }

    /// Returns whether readers see what is written at once.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.patients, Sink::Stream(_))
    }

    pub(crate) fn write(&mut self, change: &Change) -> anyhow::Result<()> {
        match (change, self.format) {
            (Change::Stored(patient), Format::Jsonl) => self.patients.write(&jsonl::patient(patient)?),
            (Change::Stored(patient), Format::Csv) => self.patients.write(&csv::patient(patient, self.is_followed)?),
            (Change::Stored(patient), Format::Fhir) => self.patients.write(&fhir::patient(patient)),
            (Change::Erased(erasure), Format::Jsonl) => self.patients.write(&jsonl::erasure(erasure)),
            (Change::Erased(erasure), Format::Csv) => match &mut self.erasures {
                Some(file) => file.write(&csv::erasure(erasure)?),
                None if self.is_followed => self.patients.write(&csv::followed_erasure(erasure)?),
                None => say(erasure),
            },
            (Change::Erased(erasure), Format::Fhir) => match &mut self.erasures {
                Some(file) => file.write(&fhir::erasure(erasure)),
                None if self.is_followed => self.patients.write(&fhir::erasure(erasure)),
                None => say(erasure),
            },
        }
    }

    /// Ends a batch: a followed stream gets the token that comes after it.
    pub(crate) fn end_batch(&mut self, token: FeedToken) -> anyhow::Result<()> {
        if self.is_followed {
            let text = match self.format {
                Format::Jsonl => jsonl::token(token),
                Format::Csv => csv::token(token)?,
                Format::Fhir => fhir::token(token),
            };
            self.patients.write(&text)?;
        }
        if let Sink::Stream(stream) = &mut self.patients {
            stream.flush().and_then(|()| sync(stream.get_ref())).context(UNWRITTEN)?;
        }
        self.expect_reader()
    }

    /// Fails where the program behind the pipe has ended.
    pub(crate) fn expect_reader(&self) -> anyhow::Result<()> {
        let Sink::Stream(stream) = &self.patients else { return Ok(()) };
        let mut watched = [PollFd::new(stream.get_ref(), PollFlags::empty())];
        // Nothing is waited for; an error of the stream is always reported.
        match poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(0) | Err(_) => Ok(()),
            Ok(_) => bail!("{UNWRITTEN}: the program that reads it has ended"),
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
            Self::Stream(stream) => stream.write_all(text.as_bytes()).context(UNWRITTEN),
            Self::File(file) => file.write(text),
        }
    }
}

/// Returns where a file of this name appears: where a link leads, and never in place of a device or a folder.
pub(super) fn regular_file(option: &str, path: &Path) -> anyhow::Result<PathBuf> {
    let name = || format!("{option}: {}", path.display());
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

/// Puts standard output on disk, where it is a file, before the token is printed.
fn sync(stdout: &Stdout) -> std::io::Result<()> {
    let file = File::from(stdout.as_fd().try_clone_to_owned()?);
    if file.metadata()?.is_file() { file.sync_all() } else { Ok(()) }
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
    // Not by a macro, which would hide a failed write.
    stderr().write_all(line.as_bytes()).context("the erasure cannot be printed")
}
