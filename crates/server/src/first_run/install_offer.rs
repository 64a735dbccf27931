//! A developer's machine without PostgreSQL: the person at the terminal is asked once whether to install its
//! programs. A program that starts this one is never asked, and nothing is installed without a yes.

use std::io::{IsTerminal, Write, stderr, stdin};
use std::process::Command;

use intake_infra::embedded::{EmbeddedError, InstallCommand, assert_installed};

use crate::settings::configuration::Configuration;

/// Offers to install PostgreSQL's programs, if they are needed and missing. If they are still missing
/// afterwards, the start of the database says so.
pub(crate) fn offer_postgres(configuration: &Configuration) {
    let is_embedded = configuration.database.is_none() && configuration.postgres_bin.is_none();
    if !is_embedded || !stdin().is_terminal() || !stderr().is_terminal() {
        return;
    }
    if let Err(EmbeddedError::NotInstalled(Some(command))) = assert_installed(None)
        && command.may_run()
        && says_yes(&command)
    {
        // Its output is seen, and so is why it failed.
        let _ = Command::new("sh").arg("-c").arg(command.to_string()).status();
    }
}

/// Asks on the terminal. Everything but a yes is a no, and so is a terminal that cannot be written or read.
fn says_yes(command: &InstallCommand) -> bool {
    let question = format!(
        "intake needs PostgreSQL's programs (15 or newer), and this machine has none.\n\
         This command installs them and starts no server:\n\n  {command}\n\nRun it? [y/N] "
    );
    let mut answer = String::new();
    let is_asked = stderr().write_all(question.as_bytes()).is_ok() && stdin().read_line(&mut answer).is_ok();
    // Ctrl-D ends the answer, not the line.
    if !answer.ends_with('\n') {
        let _ = stderr().write_all(b"\n");
    }
    is_asked && ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str())
}
