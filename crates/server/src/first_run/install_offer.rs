//! A developer's machine without PostgreSQL: the person at the terminal is asked once whether to install its
//! programs. A program that starts this one is never asked, and nothing is installed without a yes.

use std::process::Command;

use intake_infra::embedded::{EmbeddedError, InstallCommand, assert_installed};

use crate::commands::confirm::{is_at_terminal, says_yes};
use crate::settings::configuration::Configuration;

/// Offers to install PostgreSQL's programs, if they are needed and missing. If they are still missing
/// afterwards, the start of the database says so.
pub(crate) fn offer_postgres(configuration: &Configuration) {
    let is_embedded = configuration.database.is_none() && configuration.postgres_bin.is_none();
    if !is_embedded || !is_at_terminal() {
        return;
    }
    if let Err(EmbeddedError::NotInstalled(Some(command))) = assert_installed(None)
        && command.may_run()
        && says_yes(&question(&command))
    {
        // Its output is seen, and so is why it failed.
        let _ = Command::new("sh").arg("-c").arg(command.to_string()).status();
    }
}

fn question(command: &InstallCommand) -> String {
    format!(
        "intake needs PostgreSQL's programs (15 or newer), and this machine has none.\n\
         This command installs them and starts no server:\n\n  {command}\n\nRun it?"
    )
}
