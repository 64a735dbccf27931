//! The follower of the audit log, `intake audit --follow`: it must print every entry once, whatever the clocks do.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use diesel::prelude::*;
use diesel::sql_types::Text;

use crate::audit::Findings;
use crate::operations::PAUSE;
use crate::test_bed::TestBed;

/// A running follower.
pub(crate) struct Follower {
    run: Child,
    file: PathBuf,
}

#[derive(QueryableByName)]
struct Entry {
    #[diesel(sql_type = Text)]
    id: String,
}

impl Follower {
    pub(crate) fn start(program: &Path, bed: &TestBed) -> anyhow::Result<Self> {
        let file = bed.folder.join("followed.jsonl");
        let mut command = Command::new(program);
        command.args(["audit", "--follow", "--json"]).env("DATABASE_URL", bed.urls.owner.expose());
        command.env("INTAKE_ENVIRONMENT", bed.environment.as_str()).stdin(Stdio::null()).stderr(Stdio::null());
        let run = command.stdout(File::create(&file)?).spawn()?;
        Ok(Self { run, file })
    }

    /// Ends the follower when it has printed every entry, or has had time until then. Returns the ids that it printed,
    /// and those of all entries.
    pub(crate) fn finish(mut self, bed: &TestBed, until: Instant) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        let entries = "SELECT id::text FROM audit_entries";
        let entries: Vec<Entry> = diesel::sql_query(entries).load(&mut bed.register()?)?;
        let all: Vec<_> = entries.into_iter().map(|entry| entry.id).collect();
        let printed = loop {
            let printed = self.printed()?;
            let has_all = all.iter().collect::<HashSet<_>>().is_subset(&printed.iter().collect());
            if has_all || Instant::now() > until {
                break printed;
            }
            std::thread::sleep(PAUSE);
        };
        self.run.kill()?;
        self.run.wait()?;
        Ok((printed, all))
    }

    fn printed(&self) -> anyhow::Result<Vec<String>> {
        let text = fs::read_to_string(&self.file)?;
        // The last line may be incomplete.
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let id = |line| serde_json::from_str::<serde_json::Value>(line).ok()?.get("id")?.as_str().map(str::to_owned);
        Ok(lines.filter_map(id).collect())
    }
}

/// Compares what a follower has printed with all entries.
pub(crate) fn compare(printed: &[String], all: &[String], found: &mut Findings) {
    let mut seen = HashSet::new();
    for id in printed {
        if !seen.insert(id) {
            found.is_unfollowed(format!("audit --follow printed entry {id} twice"));
        }
    }
    for id in all.iter().filter(|id| !seen.contains(id)) {
        found.is_unfollowed(format!("audit --follow did not print entry {id}"));
    }
}
