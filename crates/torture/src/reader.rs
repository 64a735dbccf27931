//! A reader of each organisation, which exports what was committed since its last export, over and over, while faults strike.
//! In the end it must have been told exactly what is in the register, each patient once.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use diesel::pg::PgConnection;
use intake_domain::OrganisationId;
use intake_infra::{DatabaseUrl, Durability};

use crate::arena::Arena;
use crate::audit::Findings;
use crate::people::Row;

/// Between two exports: often enough to meet every fault, seldom enough to leave the machine to the clients.
const PAUSE: Duration = Duration::from_millis(100);
/// How long the last export may be tried, after the last fault.
const LAST: Duration = Duration::from_secs(180);

/// A reader of one organisation.
pub(crate) struct Reader {
    program: PathBuf,
    owner: DatabaseUrl,
    organisation: OrganisationId,
    file: PathBuf,
    token: Option<String>,
    told: Vec<String>,
}

impl Reader {
    /// A reader for each organisation of an arena; none where the database may forget what it has told.
    pub(crate) fn all(arena: &Arena, program: &Path) -> Vec<Self> {
        if arena.urls.service.durability() == Durability::None {
            return Vec::new();
        }
        let reader = |organisation: OrganisationId| Self {
            program: program.to_owned(),
            owner: arena.urls.owner.clone(),
            organisation,
            file: arena.folder.join(format!("{organisation}.jsonl")),
            token: None,
            told: Vec::new(),
        };
        arena.clinics.iter().map(|(clinic, _)| reader(clinic.organisation)).collect()
    }

    /// Reads until it is over, and then once more.
    pub(crate) fn follow(mut self, is_over: &AtomicBool) -> anyhow::Result<Self> {
        while !is_over.load(Ordering::SeqCst) {
            // What fails is tried again, from the same token.
            let _ = self.export();
            std::thread::sleep(PAUSE);
        }
        let until = Instant::now() + LAST;
        while let Err(error) = self.export() {
            ensure!(Instant::now() < until, "the last export fails: {error}");
            std::thread::sleep(PAUSE);
        }
        Ok(self)
    }

    fn export(&mut self) -> anyhow::Result<()> {
        let mut command = Command::new(&self.program);
        command.args(["export", "--format", "jsonl", "--organisation", &self.organisation.to_string(), "--output"]);
        command.arg(&self.file).env("DATABASE_URL", self.owner.expose()).stdin(Stdio::null());
        if let Some(token) = &self.token {
            command.args(["--since", token]);
        }
        let output = command.output().context("the export does not run")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{said}");
        let token = said.lines().last().and_then(|line| line.strip_prefix("next: ")).context("no token was told")?;
        for line in fs::read_to_string(&self.file)?.lines() {
            let patient: serde_json::Value = serde_json::from_str(line)?;
            self.told.push(patient.get("id").and_then(|id| id.as_str()).context("a line has no id")?.to_owned());
        }
        self.token = Some(token.to_owned());
        Ok(())
    }
}

/// Compares what readers were told with the register.
pub(crate) fn audit(readers: &[Reader], register: &mut PgConnection, found: &mut Findings) -> anyhow::Result<()> {
    let mut stored: HashMap<String, HashSet<String>> = HashMap::new();
    for row in Row::all(register)? {
        stored.entry(row.organisation_id.to_string()).or_default().insert(row.id.to_string());
    }
    for reader in readers {
        let stored = stored.remove(&reader.organisation.to_string()).unwrap_or_default();
        compare(&reader.told, &stored, found);
    }
    Ok(())
}

fn compare(told: &[String], stored: &HashSet<String>, found: &mut Findings) {
    let mut once = HashSet::new();
    for id in told {
        if !once.insert(id) {
            found.is_wrong(format!("a reader was told of patient {id} twice"));
        }
        if !stored.contains(id) {
            found.is_wrong(format!("a reader was told of patient {id}, which is not there"));
        }
    }
    for id in stored.iter().filter(|id| !once.contains(id)) {
        found.is_wrong(format!("no reader was told of patient {id}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_not_told_or_told_twice_or_not_there_is_seen() {
        let wrong = |told: &[&str], stored: &[&str]| {
            let mut found = Findings::default();
            let told: Vec<String> = told.iter().map(|id| (*id).to_owned()).collect();
            compare(&told, &stored.iter().map(|id| (*id).to_owned()).collect(), &mut found);
            found.wrong
        };
        assert_eq!(wrong(&["a", "b"], &["b", "a"]), 0);
        assert_eq!(wrong(&["a"], &["a", "b"]), 1);
        assert_eq!(wrong(&["a", "a"], &["a"]), 1);
        assert_eq!(wrong(&["a", "b"], &["a"]), 1);
    }
}
