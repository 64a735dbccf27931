//! A machine without PostgreSQL: its programs are installed after a yes, from the person at the terminal or as `--yes`.
//! A program that starts this one is never asked.

use anyhow::bail;
use intake_infra::embedded::{EmbeddedError, InstallCommand, assert_installed};

use crate::commands::confirm::{agrees, is_at_terminal};
use crate::settings::configuration::Configuration;

/// Installs PostgreSQL's programs after a yes, if they are needed and missing. If they are still missing afterwards,
/// the start of the database says so.
pub(crate) fn install_postgres(configuration: &Configuration, is_yes: bool) -> anyhow::Result<()> {
    if configuration.database.is_some() || configuration.postgres_bin.is_some() {
        return Ok(());
    }
    let Err(EmbeddedError::NotInstalled(Some(command))) = assert_installed(None) else { return Ok(()) };
    if !command.may_run() {
        return Ok(());
    }
    if !is_yes && !is_at_terminal() {
        // Cargo says so to the program that it runs.
        let again = if std::env::var_os("CARGO").is_some() { "cargo run -- --yes" } else { "intake --yes" };
        bail!(
            "no PostgreSQL 15 or newer is installed: `{again}` installs it, by `{command}`, and starts; or set \
             DATABASE_URL"
        );
    }
    if is_yes || agrees(&question(&command)) {
        command.run()?;
    }
    Ok(())
}

fn question(command: &InstallCommand) -> String {
    format!(
        "intake needs PostgreSQL's programs (15 or newer), and this machine has none.\n\
         This command installs them and starts no server:\n\n  {command}\n\nRun it?"
    )
}
