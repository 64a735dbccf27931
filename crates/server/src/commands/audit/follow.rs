//! `intake audit --follow` and `--state`: each entry once, in the order of their recording, within a run and from run
//! to run.

use std::error::Error as _;
use std::io::stdout;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use intake_domain::AuditEntry;
use intake_infra::{AuditFollower, AuditPosition, Database, FollowError};

use super::entry::{line_of, value_of};
use super::explain;
use crate::commands::output::print;
use crate::export::standard_error::say;
use crate::export::unfinished_file::{read_if_there, regular_file, replace};
use crate::export::{Stop, sync};
use crate::settings::audit_arguments::AuditArguments;

/// Between two looks for more.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

const STATE: &str = "--state";

pub(super) async fn follow(arguments: &AuditArguments, database: Database, stop: &Stop) -> anyhow::Result<()> {
    let (position, state) = read_state(arguments.state.as_deref())?;
    let mut goes_on = position.is_some();
    let begin = |position| AuditFollower::new(database.clone(), arguments.selection(), position);
    let mut log = begin(position.unwrap_or_default());
    let mut has_begun = false;
    let shown = |entry: &AuditEntry| if arguments.output.json { value_of(entry).to_string() } else { line_of(entry) };
    loop {
        match log.next_page().await {
            Ok(Some(page)) => {
                (has_begun, goes_on) = (true, false);
                print(&page.iter().map(shown).collect::<Vec<_>>().join("\n"))?;
                continue;
            }
            Ok(None) => {
                (has_begun, goes_on) = (true, false);
                stop.forget_what_was_said();
                keep(state.as_deref(), log.position())?;
            }
            // Nothing is left out, and programs that keep entries know them by their ids.
            Err(FollowError::Replaced) if goes_on => {
                say("the database is another one than at the last run: all entries are printed again")?;
                (goes_on, log) = (false, begin(AuditPosition::default()));
                continue;
            }
            // A follower waits for a database that is away.
            Err(FollowError::Store(error)) if has_begun && arguments.follow && !stop.is_asked() => {
                let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                stop.say_once(&format!("the database cannot be read; still trying: {why}"));
            }
            Err(error) => return Err(explain(error)),
        }
        if !arguments.follow || stop.comes_within(LOOK_INTERVAL) {
            return Ok(());
        }
    }
}

/// Position at which the last run ended, if there was one, and the file that keeps it.
fn read_state(path: Option<&Path>) -> anyhow::Result<(Option<AuditPosition>, Option<PathBuf>)> {
    let Some(path) = path else { return Ok((None, None)) };
    let path = regular_file(STATE, path)?;
    let name = || format!("{STATE}: {}", path.display());
    let text = read_if_there(&path).with_context(name)?;
    let position = text.map(|text| serde_json::from_str(&text)).transpose().with_context(name)?;
    Ok((position, Some(path)))
}

/// Replaces the state when what comes before it is on disk.
fn keep(path: Option<&Path>, position: &AuditPosition) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    sync(&stdout()).context("the entries cannot be written")?;
    replace(STATE, path, &serde_json::to_string(position)?)
}
