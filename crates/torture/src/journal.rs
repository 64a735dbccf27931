//! The journal of what was sent and what was answered, one line each, written to the file before anything else happens.
//! The register is compared with it in the end.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use uuid::Uuid;

/// Action of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Sends a patient once.
    Once,
    /// Sends a patient with a key of safe retry until it is acknowledged.
    Safe,
    /// Sends a patient that breaks a rule.
    Faulty,
    /// Sends a patient with a key that nobody has.
    Stranger,
    /// Sends a patient with the idempotency key of another patient.
    OtherPatient,
    /// Sends a patient with an API key that may end at any moment, once.
    EndingKey,
    /// A row of a file that `intake-import` sends.
    Imported,
}

/// The journal of one run while it is written.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    known: Mutex<Known>,
}

/// Facts that readers of the register are held to while the journal is written.
#[derive(Default)]
struct Known {
    /// The acknowledged patients in order: organisation and id.
    acknowledged: Vec<(Uuid, String)>,
    /// The ids of patients whose erasure has begun.
    erasing: HashSet<String>,
    /// The ids of patients whose erasure is done.
    erased: HashSet<String>,
}

impl Journal {
    pub(crate) fn begin(path: PathBuf) -> anyhow::Result<Self> {
        let file = File::options().create_new(true).append(true).open(&path)?;
        Ok(Self { path, file, known: Mutex::default() })
    }

    /// A patient is about to be sent.
    pub(crate) fn sent(&self, number: u64, organisation: Uuid, kind: Kind) {
        self.write(format_args!("{number} sent {organisation} {kind:?}"));
    }

    /// A patient of this organisation was acknowledged, with this id and time; `-` where the time is not known.
    pub(crate) fn created(&self, number: u64, organisation: Uuid, id: &str, at: &str) {
        self.write(format_args!("{number} created {id} {at}"));
        self.known().acknowledged.push((organisation, id.to_owned()));
    }

    /// The patient with this id is about to be erased.
    pub(crate) fn erasing(&self, number: u64, id: &str) {
        self.write(format_args!("{number} erasing {id}"));
        self.known().erasing.insert(id.to_owned());
    }

    /// The patient with this id has been erased.
    pub(crate) fn erased(&self, number: u64, id: &str) {
        self.write(format_args!("{number} erased {id}"));
        self.known().erased.insert(id.to_owned());
    }

    /// The register was restored to an earlier moment: the acknowledgement may be void.
    pub(crate) fn forgotten(&self, number: u64) {
        self.write(format_args!("{number} forgotten -"));
    }

    /// Another answer came, which says that nothing was stored.
    pub(crate) fn refused(&self, number: u64, status: u16) {
        self.write(format_args!("{number} refused {status}"));
    }

    /// No answer came, or one that leaves the outcome open.
    pub(crate) fn unknown(&self, number: u64, why: &str) {
        self.write(format_args!("{number} unknown {why}"));
    }

    /// An answer came that must never come.
    pub(crate) fn wrong(&self, number: u64, what: &str) {
        self.write(format_args!("{number} wrong {what}"));
    }

    /// Returns how many were acknowledged so far.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.known().acknowledged.len() as u64
    }

    /// The ids of the patients that were erased so far.
    pub(crate) fn erased_ids(&self) -> HashSet<String> {
        self.known().erased.clone()
    }

    /// The ids of an organisation's patients among the acknowledged from this position on, and the next position.
    pub(crate) fn acknowledged_since(&self, organisation: Uuid, position: usize) -> (Vec<String>, usize) {
        let known = self.known();
        let since = known.acknowledged.get(position..).unwrap_or_default();
        let ids = since.iter().filter(|(of, _)| *of == organisation).map(|(_, id)| id.clone()).collect();
        (ids, known.acknowledged.len())
    }

    /// Returns whether the erasure of a patient has begun.
    pub(crate) fn is_erasing(&self, id: &str) -> bool {
        self.known().erasing.contains(id)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// One write for each line, so that lines of several clients do not mix.
    #[expect(clippy::expect_used, reason = "without a journal the run is worth nothing")]
    fn write(&self, line: std::fmt::Arguments<'_>) {
        (&self.file).write_all(format!("{line}\n").as_bytes()).expect("the journal can be written");
    }
}

/// Progress of the erasure of a patient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Erasure {
    None,
    Begun,
    Done,
}

/// Entry of a journal about one number.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) organisation: Uuid,
    pub(crate) kind: Kind,
    /// The id and the time of the acknowledgement.
    pub(crate) created: Option<(String, String)>,
    pub(crate) refused: Option<u16>,
    pub(crate) erasure: Erasure,
    pub(crate) unknown: u64,
    pub(crate) wrong: Vec<String>,
}

/// Reads a journal back.
pub(crate) fn read(path: &Path) -> anyhow::Result<HashMap<u64, Operation>> {
    let mut operations = HashMap::new();
    for line in BufReader::new(File::open(path)?).lines() {
        let line = line?;
        note(&mut operations, &line).with_context(|| format!("the journal says: {line}"))?;
    }
    Ok(operations)
}

fn note(operations: &mut HashMap<u64, Operation>, line: &str) -> anyhow::Result<()> {
    let (number, rest) = line.split_once(' ').context("a number")?;
    let (event, rest) = rest.split_once(' ').context("an event")?;
    let number = number.parse()?;
    if event == "sent" {
        let (organisation, kind) = rest.split_once(' ').context("an organisation")?;
        let (organisation, kind) = (organisation.parse()?, kind.parse()?);
        let operation = Operation {
            organisation,
            kind,
            created: None,
            refused: None,
            erasure: Erasure::None,
            unknown: 0,
            wrong: Vec::new(),
        };
        operations.insert(number, operation);
        return Ok(());
    }
    let operation = operations.get_mut(&number).context("it was never sent")?;
    match event {
        "created" => {
            let (id, at) = rest.split_once(' ').context("an id")?;
            operation.created = Some((id.to_owned(), at.to_owned()));
        }
        "refused" => operation.refused = Some(rest.parse()?),
        "erasing" => operation.erasure = Erasure::Begun,
        "erased" => operation.erasure = Erasure::Done,
        "forgotten" => operation.created = None,
        "unknown" => operation.unknown += 1,
        "wrong" => operation.wrong.push(rest.to_owned()),
        other => anyhow::bail!("no such event: {other}"),
    }
    Ok(())
}

impl FromStr for Kind {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let all =
            [Self::Once, Self::Safe, Self::Faulty, Self::Stranger, Self::OtherPatient, Self::EndingKey, Self::Imported];
        all.into_iter().find(|kind| format!("{kind:?}") == text).with_context(|| format!("no such kind: {text}"))
    }
}
