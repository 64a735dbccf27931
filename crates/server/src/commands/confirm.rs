//! Questions to a person at a terminal.

use std::io::{IsTerminal, Write, stderr, stdin};

use anyhow::ensure;
use serde_json::Value;

use crate::commands::output::print_result;
use crate::settings::arguments::{Brakes, Output};

/// Returns whether there is a person to ask.
pub(crate) fn is_at_terminal() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Asks before something is done that cannot be undone. Everything but a yes is a no, and so is a terminal that cannot
/// be written or read.
fn says_yes(question: &str) -> bool {
    answer(&format!("{question} [y/N] ")).is_some_and(|answer| is_yes(&answer))
}

/// Shows what a command ends for good. Returns whether to go on, which a dry run does not; a no at a terminal is an
/// error.
pub(crate) fn goes_on(brakes: &Brakes, output: &Output, ends: &Value, preview: &str) -> anyhow::Result<bool> {
    if brakes.dry_run {
        print_result(output, ends, &format!("{preview}\nNothing was changed."))?;
        return Ok(false);
    }
    ask(brakes, &format!("{preview}\nContinue?"))?;
    Ok(true)
}

/// Asks at a terminal, unless the answer was given beforehand. A no is an error.
pub(crate) fn ask(brakes: &Brakes, question: &str) -> anyhow::Result<()> {
    ensure!(brakes.yes || !is_at_terminal() || says_yes(question), "nothing was changed");
    Ok(())
}

/// Asks where Enter alone means yes.
pub(crate) fn agrees(question: &str) -> bool {
    answer(&format!("{question} [Y/n] ")).is_some_and(|answer| answer.is_empty() || is_yes(&answer))
}

/// The line that was typed; none after Ctrl-D, which ends the answer and not the line.
fn answer(question: &str) -> Option<String> {
    let mut answer = String::new();
    let is_asked = stderr().write_all(question.as_bytes()).is_ok() && stdin().read_line(&mut answer).is_ok();
    if !answer.ends_with('\n') {
        let _ = stderr().write_all(b"\n");
        return None;
    }
    is_asked.then(|| answer.trim().to_ascii_lowercase())
}

fn is_yes(answer: &str) -> bool {
    ["y", "yes"].contains(&answer)
}
