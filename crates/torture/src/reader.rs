//! A reader of each organisation, which exports what was committed since its last export, over and over, while faults
//! strike, and which is killed now and then. In the end it must have read exactly what is in the register, each patient
//! once, and each erasure once; and each export must have what was acknowledged before it began.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use diesel::pg::PgConnection;
use intake_domain::OrganisationId;
use intake_infra::{DatabaseUrl, Durability};

use crate::audit::Findings;
use crate::journal::Journal;
use crate::people::Row;
use crate::random::Random;
use crate::test_bed::TestBed;

/// Between two exports: often enough to meet every fault, seldom enough to leave the machine to the clients.
const PAUSE: Duration = Duration::from_millis(100);
/// Time for which the last export may be tried, after the last fault.
const LAST: Duration = Duration::from_secs(180);
/// One export in this many is killed, after this many milliseconds: before, while and after it writes.
const KILL_ONE_IN: u64 = 6;
const KILLED: (u64, u64) = (1, 60);
/// The first of the readers' random streams.
const STREAM: u64 = 14_000;
/// Words of the program about a token that the database does not have.
const UNKNOWN_TOKEN: &str = "does not know the token";

/// A reader of one organisation.
pub(crate) struct Reader {
    program: PathBuf,
    owner: DatabaseUrl,
    organisation: OrganisationId,
    file: PathBuf,
    token: Option<String>,
    read: Vec<Event>,
    /// The acknowledged patients up to here must have been read.
    position: usize,
    random: Random,
    found: Findings,
}

/// A line of an export: a patient's id, or that of an erased patient.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Patient(String),
    Erasure(String),
}

impl Reader {
    /// A reader for each organisation of an bed; none where the database may forget what was exported.
    pub(crate) fn all(bed: &TestBed, program: &Path, seed: u64) -> Vec<Self> {
        if bed.urls.service.durability() == Durability::None {
            return Vec::new();
        }
        let reader = |(organisation, stream): (OrganisationId, u64)| Self {
            program: program.to_owned(),
            owner: bed.urls.owner.clone(),
            organisation,
            file: bed.folder.join(format!("{organisation}.jsonl")),
            token: None,
            read: Vec::new(),
            position: 0,
            random: Random::new(seed, stream),
            found: Findings::default(),
        };
        bed.clinics.iter().map(|(clinic, _)| clinic.organisation).zip(STREAM..).map(reader).collect()
    }

    /// Reads until it is over.
    pub(crate) fn follow(mut self, journal: &Journal, is_over: &AtomicBool) -> Self {
        while !is_over.load(Ordering::SeqCst) {
            // What fails is tried again, from the same token.
            let _ = self.export(journal, true);
            std::thread::sleep(PAUSE);
        }
        self
    }

    /// Reads once more.
    pub(crate) fn finish(&mut self, journal: &Journal) -> anyhow::Result<()> {
        let until = Instant::now() + LAST;
        while let Err(error) = self.export(journal, false) {
            ensure!(Instant::now() < until, "the last export fails: {error}");
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Takes the token of an export whose output is thrown away.
    pub(crate) fn skip(&mut self) -> anyhow::Result<()> {
        let output = self.run(false)?;
        self.token = Some(token_of(&output)?);
        Ok(())
    }

    /// After the register was restored to an earlier moment: where the database does not know the token, everything is
    /// read once more, as the documents say.
    pub(crate) fn start_again_if_refused(&mut self) -> anyhow::Result<()> {
        let output = self.run(false)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(said.contains(UNKNOWN_TOKEN), "a token is refused for another reason: {said}");
            (self.token, self.read, self.position) = (None, Vec::new(), usize::MAX);
        }
        Ok(())
    }

    fn export(&mut self, journal: &Journal, may_be_killed: bool) -> anyhow::Result<()> {
        let position = journal.acknowledged_since(*self.organisation.as_uuid(), self.position);
        let may_be_killed = may_be_killed && self.random.one_in(KILL_ONE_IN);
        let output = self.run(may_be_killed)?;
        let token = token_of(&output)?;
        for line in fs::read_to_string(&self.file)?.lines() {
            let line: serde_json::Value = serde_json::from_str(line)?;
            let id = line.get("id").and_then(|id| id.as_str()).context("a line has no id")?.to_owned();
            self.read.push(if line.get("erasedAt").is_some() { Event::Erasure(id) } else { Event::Patient(id) });
        }
        self.token = Some(token);
        let (acknowledged, next) = position;
        self.must_have(&acknowledged, journal);
        // After a restore nobody knows which of them are left.
        self.position = if self.position == usize::MAX { usize::MAX } else { next };
        Ok(())
    }

    /// Runs the program, and kills it if it may be killed.
    fn run(&mut self, may_be_killed: bool) -> anyhow::Result<Output> {
        let mut command = Command::new(&self.program);
        command.args(["export", "--format", "jsonl", "--organisation", &self.organisation.to_string(), "--output"]);
        command.arg(&self.file).env("DATABASE_URL", self.owner.expose());
        if let Some(token) = &self.token {
            command.args(["--since", token]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut run = command.spawn().context("the export does not run")?;
        if may_be_killed {
            std::thread::sleep(self.random.milliseconds(KILLED.0, KILLED.1));
            run.kill()?;
        }
        Ok(run.wait_with_output()?)
    }

    /// Checks that what was acknowledged before an export began was read by it.
    fn must_have(&mut self, acknowledged: &[String], journal: &Journal) {
        let read: HashSet<&String> = self.read.iter().map(Event::id).collect();
        for id in acknowledged.iter().filter(|id| !read.contains(id) && !journal.is_erasing(id)) {
            self.found.is_misread(format!("patient {id} was acknowledged before an export that has it not"));
        }
    }
}

impl Event {
    fn id(&self) -> &String {
        match self {
            Self::Patient(id) | Self::Erasure(id) => id,
        }
    }
}

fn token_of(output: &Output) -> anyhow::Result<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{said}");
    Ok(said.lines().last().and_then(|line| line.strip_prefix("next: ")).context("no token was printed")?.to_owned())
}

/// Compares what readers have read with the register.
pub(crate) fn audit(
    readers: &[Reader],
    journal: &Journal,
    register: &mut PgConnection,
    found: &mut Findings,
) -> anyhow::Result<()> {
    let mut stored: HashMap<String, HashSet<String>> = HashMap::new();
    for row in Row::all(register)? {
        stored.entry(row.organisation_id.to_string()).or_default().insert(row.id.to_string());
    }
    let erased = journal.erased_ids();
    for reader in readers {
        *found += reader.found.clone();
        let stored = stored.remove(&reader.organisation.to_string()).unwrap_or_default();
        compare(&reader.read, &stored, &erased, found);
    }
    Ok(())
}

fn compare(read: &[Event], stored: &HashSet<String>, erased: &HashSet<String>, found: &mut Findings) {
    let (mut patients, mut erasures) = (HashSet::new(), HashSet::new());
    for event in read {
        match event {
            Event::Patient(id) if erasures.contains(id) => {
                found.is_misread(format!("a reader got patient {id} after its erasure"));
            }
            Event::Patient(id) if !patients.insert(id) => found.is_misread(format!("a reader got patient {id} twice")),
            Event::Erasure(id) if !erasures.insert(id) => {
                found.is_misread(format!("a reader got the erasure of patient {id} twice"));
            }
            Event::Patient(id) if !stored.contains(id) && !erased.contains(id) => {
                found.is_misread(format!("a reader got patient {id}, which is not there"));
            }
            Event::Erasure(id) if !erased.contains(id) => {
                found.is_misread(format!("a reader got an erasure of patient {id}, which nobody erased"));
            }
            _ => {}
        }
    }
    for id in stored.iter().filter(|id| !patients.contains(id)) {
        found.is_misread(format!("no reader got patient {id}"));
    }
    for id in patients.iter().filter(|id| erased.contains(**id) && !erasures.contains(*id)) {
        found.is_misread(format!("no reader got the erasure of patient {id}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `+a` is a patient, `-a` an erasure.
    fn misread(read: &[&str], stored: &[&str], erased: &[&str]) -> u64 {
        let mut found = Findings::default();
        let event = |text: &&str| match text.split_at(1) {
            ("+", id) => Event::Patient(id.to_owned()),
            (_, id) => Event::Erasure(id.to_owned()),
        };
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        compare(&read.iter().map(event).collect::<Vec<_>>(), &ids(stored), &ids(erased), &mut found);
        found.misread
    }

    #[test]
    fn rows_that_a_reader_missed_or_got_twice_or_got_wrongly_are_found() {
        assert_eq!(misread(&["+a", "+b"], &["b", "a"], &[]), 0);
        assert_eq!(misread(&["+a"], &["a", "b"], &[]), 1);
        assert_eq!(misread(&["+a", "+a"], &["a"], &[]), 1);
        assert_eq!(misread(&["+a", "+b"], &["a"], &[]), 1);
    }

    #[test]
    fn an_erasure_is_read_once_and_last() {
        assert_eq!(misread(&["+a", "-a"], &[], &["a"]), 0);
        assert_eq!(misread(&["-a"], &[], &["a"]), 0, "created and erased between two exports");
        assert_eq!(misread(&[], &[], &["a"]), 0, "the same");
        assert_eq!(misread(&["+a"], &[], &["a"]), 1);
        assert_eq!(misread(&["+a", "-a", "-a"], &[], &["a"]), 1);
        assert_eq!(misread(&["-a", "+a"], &[], &["a"]), 1);
        assert_eq!(misread(&["+a", "-a"], &["a"], &[]), 1);
    }
}
