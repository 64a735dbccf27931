//! The folder in which a delivery keeps its token, its state and the events that the target refused.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use intake_domain::{PatientId, timestamp};
use intake_edge as edge;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::commands::deliver::event::Event;
use crate::export::unfinished_file::{read_if_there, replace, unfinished};

const REFUSED: &str = "refused";
const AGAIN: &str = "again";
const STATUS: &str = "status.json";
/// Events that are read at a time from those to be sent again.
const AGAIN_MAX: usize = 500;
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// The folder of a delivery.
pub(crate) struct Folder(PathBuf);

/// State of a delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Status {
    /// The target, to which the token belongs.
    pub(crate) to: String,
    /// Time at which everything that there was had been taken.
    pub(crate) up_to_date_at: Option<String>,
    /// Patients that the target has taken.
    pub(crate) delivered: u64,
    /// Erasures that the target has taken.
    pub(crate) erased: u64,
    /// Reason why it takes nothing at present.
    pub(crate) fault: Option<String>,
    /// Events that wait in the feed, counted up to 100,000.
    #[serde(default)]
    pub(crate) backlog: i64,
    /// Time of the oldest of them.
    #[serde(default)]
    pub(crate) oldest_at: Option<String>,
    /// Time that the target takes to answer, in milliseconds.
    #[serde(default)]
    pub(crate) answer_ms: Option<u64>,
}

/// An event that the target did not take, without what the patient has sent.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Letter {
    id: String,
    is_erased: bool,
    /// Empty for a patient.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    body: String,
    reason: String,
    at: String,
}

impl Letter {
    fn event(self) -> anyhow::Result<Event> {
        Ok(Event { id: self.id.parse()?, is_erased: self.is_erased, body: self.body })
    }
}

impl Folder {
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let folder = Self(path.to_owned());
        for part in [path.to_owned(), folder.part(REFUSED), folder.part(AGAIN)] {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(&part);
            made.with_context(|| format!("--state: {}", part.display()))?;
        }
        Ok(folder)
    }

    /// The folder of a delivery that has been begun.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let folder = Self(path.to_owned());
        if !folder.part(REFUSED).is_dir() {
            bail!("--state: {} is not the folder of a delivery", path.display());
        }
        Ok(folder)
    }

    pub(crate) fn part(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Keeps other deliveries away for as long as the file is open. None: there is one.
    pub(crate) fn lock(&self) -> anyhow::Result<Option<File>> {
        let file = self.lock_file()?;
        let started = Instant::now();
        // The command that shows the state holds the lock for a moment.
        while file.try_lock().is_err() {
            if started.elapsed() > LOCK_TIMEOUT {
                return Ok(None);
            }
            sleep(LOCK_TIMEOUT / 20);
        }
        Ok(Some(file))
    }

    /// Returns whether a delivery runs.
    pub(crate) fn is_locked(&self) -> anyhow::Result<bool> {
        Ok(self.lock_file()?.try_lock_shared().is_err())
    }

    fn lock_file(&self) -> anyhow::Result<File> {
        let path = self.part("lock");
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        file.with_context(|| format!("--state: {}", path.display()))
    }

    pub(crate) fn status(&self) -> anyhow::Result<Option<Status>> {
        read(&self.part(STATUS))
    }

    pub(crate) fn set_status(&self, status: &Status) -> anyhow::Result<()> {
        write(&self.part(STATUS), status)
    }

    /// Keeps an event for the operator.
    pub(crate) fn refuse(&self, event: &Event, reason: String) -> anyhow::Result<()> {
        self.write_letter(REFUSED, event, reason)?;
        self.settle(event)
    }

    /// Keeps an event that failed, until it is settled.
    pub(crate) fn keep(&self, event: &Event, reason: String) -> anyhow::Result<()> {
        self.write_letter(AGAIN, event, reason)
    }

    fn write_letter(&self, part: &str, event: &Event, reason: String) -> anyhow::Result<()> {
        let body = if event.is_erased { event.body.clone() } else { String::new() };
        let (id, at) = (event.id.to_string(), timestamp(edge::now()));
        write(&self.letter(part, event), &Letter { id, is_erased: event.is_erased, body, reason, at })
    }

    /// Number of events that were refused.
    pub(crate) fn refused(&self) -> anyhow::Result<usize> {
        Ok(names(&self.part(REFUSED))?.len())
    }

    /// Number of events that failed, and are tried again.
    pub(crate) fn waiting(&self) -> anyhow::Result<usize> {
        Ok(names(&self.part(AGAIN))?.len())
    }

    /// Has every event that was refused sent again; returns how many these are.
    pub(crate) fn retry(&self) -> anyhow::Result<usize> {
        let names = names(&self.part(REFUSED))?;
        for name in &names {
            let again = self.part(AGAIN).join(name);
            fs::rename(self.part(REFUSED).join(name), &again).with_context(|| again.display().to_string())?;
        }
        sync(&self.part(AGAIN))?;
        Ok(names.len())
    }

    /// Events that failed or that an operator has sent again, of those patients who are wanted.
    pub(crate) fn again(&self, is_wanted: impl Fn(PatientId) -> bool) -> anyhow::Result<Vec<Event>> {
        let id = |name: &str| name.split('.').next().and_then(|id| id.parse().ok());
        let names = names(&self.part(AGAIN))?.into_iter().filter(|name| id(name).is_some_and(&is_wanted));
        let event = |path: PathBuf| {
            let letter = read::<Letter>(&path).transpose()?;
            Some(letter.and_then(|letter| letter.event().with_context(|| path.display().to_string())))
        };
        names.filter_map(|name| event(self.part(AGAIN).join(name))).take(AGAIN_MAX).collect()
    }

    /// Forgets an event that failed before.
    pub(crate) fn settle(&self, event: &Event) -> anyhow::Result<()> {
        remove(&self.letter(AGAIN, event))
    }

    /// Removes what is kept of a patient.
    pub(crate) fn forget(&self, id: PatientId) -> anyhow::Result<()> {
        for part in [AGAIN, REFUSED] {
            let path = self.letter(part, &Event { id, is_erased: false, body: String::new() });
            remove(&unfinished(&path))?;
            remove(&path)?;
        }
        Ok(())
    }

    fn letter(&self, part: &str, event: &Event) -> PathBuf {
        let kind = if event.is_erased { ".erased" } else { "" };
        self.part(part).join(format!("{}{kind}.json", event.id))
    }
}

/// Names of the files that are complete, in the order of their ids.
fn names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let entries = entries.with_context(|| folder.display().to_string())?;
    let mut names: Vec<String> = entries.iter().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name.ends_with(".json"));
    names.sort_unstable();
    Ok(names)
}

fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Option<T>> {
    let name = || path.display().to_string();
    let text = read_if_there(path).with_context(name)?;
    text.map(|text| serde_json::from_str(&text)).transpose().with_context(name)
}

fn write(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    replace("--state", path, &serde_json::to_string(value)?)
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
        Ok(()) => path.parent().map_or(Ok(()), sync),
    }
}

fn sync(folder: &Path) -> anyhow::Result<()> {
    File::open(folder).and_then(|folder| folder.sync_all()).with_context(|| folder.display().to_string())
}
