//! Where an export goes: standard output, or files that appear when they are complete and on disk. Erased patients have
//! no place among the patients of csv and fhir: they get a file of their own, or without a file a line on standard
//! error. A stream that is followed has everything in it, the tokens too, because its reader sees nothing else. What
//! FHIR patients refer to is treated the same.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Stdout, Write, stdout};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use intake_domain::{Change, FeedToken, StoredPatient, timestamp};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::reading::Receiver;
use super::standard_error::{has_room, say};
use super::unfinished_file::{UnfinishedFile, regular_file};
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
    /// The names of Australian states are replaced by their codes.
    has_state_codes: bool,
    /// Each patient has a Provenance beside it.
    has_provenance: bool,
    /// None: with the patients.
    provenances: Option<Sink>,
    /// None: with the patients of a stream that is followed.
    organisation: Option<Sink>,
    addresses: Addresses,
}

/// Numbers of addresses.
#[derive(Default)]
struct Addresses {
    all: u64,
    /// Those that have not the form of an Australian one.
    others: u64,
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
        let create = |path: PathBuf| UnfinishedFile::create(OPTION, path).map(Sink::File);
        let beside = |what: Option<&str>| what.zip(path.as_deref()).map(|(what, path)| create(beside(path, what)));
        let (of_erasures, of_organisation) = match format {
            Format::Jsonl => (None, None),
            Format::Csv => (Some("erased"), None),
            Format::Fhir => (Some("deleted"), Some("organization")),
        };
        let (has_state_codes, has_provenance) = (arguments.australian_states, arguments.provenance);
        if (has_state_codes || has_provenance) && !matches!(format, Format::Fhir) {
            bail!("--australian-states and --provenance belong to --format fhir");
        }
        let mut output = Self {
            format,
            is_followed: arguments.follow && path.is_none(),
            erasures: beside(of_erasures).transpose()?,
            provenances: beside(Some("provenance").filter(|_| has_provenance)).transpose()?,
            organisation: beside(of_organisation).transpose()?,
            has_state_codes,
            has_provenance,
            addresses: Addresses::default(),
            // The last, because the others are named after it.
            patients: path.clone().map(create).transpose()?.unwrap_or_else(|| Sink::Stream(BufWriter::new(stdout()))),
        };
        if let Format::Csv = format {
            output.patients.write(&csv::head(output.is_followed)?)?;
            if let Some(erasures) = &mut output.erasures {
                erasures.write(&csv::erasures_head()?)?;
            }
        }
        if let Format::Fhir = format {
            let sink = if output.is_followed { Some(&mut output.patients) } else { output.organisation.as_mut() };
            sink.map(|sink| sink.write(&fhir::organisation(arguments.organisation))).transpose()?;
        }
        Ok(output)
    }

    fn write_resources(&mut self, patient: &StoredPatient) -> anyhow::Result<()> {
        let is_australian = patient.has_australian_address();
        self.addresses.all += u64::from(is_australian.is_some());
        self.addresses.others += u64::from(is_australian == Some(false));
        self.patients.write(&fhir::patient(patient))?;
        if self.has_provenance {
            self.provenances.as_mut().unwrap_or(&mut self.patients).write(&fhir::provenance(patient))?;
        }
        Ok(())
    }

    /// Makes files appear. Nothing may be written afterwards.
    pub(crate) fn finish(&mut self) -> anyhow::Result<()> {
        let replaced = if let Sink::File(file) = &self.patients { file.replaced() } else { None };
        // The patients last, because their file says that the export is complete.
        let beside = [&mut self.erasures, &mut self.provenances, &mut self.organisation];
        for sink in beside.into_iter().flatten().chain([&mut self.patients]) {
            if let Sink::File(file) = sink {
                file.finish()?;
            }
        }
        if self.addresses.others > 0 {
            let Addresses { all, others } = self.addresses;
            say(&format!("{others} of {all} addresses have not the form of an Australian one"))?;
        }
        replaced.map_or(Ok(()), |path| say(&format!("replaced {}", path.display())))
    }
}

impl Receiver for Output {
    fn write(&mut self, change: &Change) -> anyhow::Result<()> {
        match (change, self.format) {
            (Change::Stored(patient), Format::Jsonl) => self.patients.write(&jsonl::patient(patient)?),
            (Change::Stored(patient), Format::Csv) => self.patients.write(&csv::patient(patient, self.is_followed)?),
            (Change::Stored(patient), Format::Fhir) if self.has_state_codes => {
                self.write_resources(&fhir::with_state_code(patient))
            }
            (Change::Stored(patient), Format::Fhir) => self.write_resources(patient),
            (Change::Erased(erasure), Format::Jsonl) => self.patients.write(&jsonl::erasure(erasure)),
            (Change::Erased(erasure), Format::Csv) => match &mut self.erasures {
                Some(file) => file.write(&csv::erasure(erasure)?),
                None if self.is_followed => self.patients.write(&csv::followed_erasure(erasure)?),
                None => say(&format!("erased: {} {}", erasure.id, timestamp(erasure.erased_at))),
            },
            (Change::Erased(erasure), Format::Fhir) => match &mut self.erasures {
                Some(file) => file.write(&fhir::erasure(erasure, self.has_provenance)),
                None if self.is_followed => self.patients.write(&fhir::erasure(erasure, self.has_provenance)),
                None => say(&format!("erased: {} {}", erasure.id, timestamp(erasure.erased_at))),
            },
        }
    }

    /// A followed stream gets the token that comes after the batch.
    fn end_batch(&mut self, token: FeedToken) -> anyhow::Result<()> {
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
        self.idle()
    }

    fn is_stream(&self) -> bool {
        matches!(self.patients, Sink::Stream(_))
    }

    /// Fails where the program behind the pipe has ended.
    fn idle(&mut self) -> anyhow::Result<()> {
        let Sink::Stream(stream) = &self.patients else { return Ok(()) };
        let mut watched = [PollFd::new(stream.get_ref(), PollFlags::empty())];
        // Nothing is waited for; an error of the stream is always reported.
        match poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(0) | Err(_) => Ok(()),
            Ok(_) => bail!("{UNWRITTEN}: the program that reads it has ended"),
        }
    }

    /// The reader of a stream that is followed has the token in it, and is not waited for here.
    fn tell(&self, token: FeedToken) -> anyhow::Result<()> {
        if self.is_followed && !has_room() { Ok(()) } else { say(&format!("next: {token}")) }
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

/// Puts standard output on disk, where it is a file, before the token is printed.
pub(crate) fn sync(stdout: &Stdout) -> std::io::Result<()> {
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
