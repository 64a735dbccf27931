//! A machine without PostgreSQL: its programs are installed after a yes, as `cargo run` does it.

use std::fmt::Display;
use std::fs::File;
use std::io::{IsTerminal, Write, stderr, stdin};

use intake_infra::embedded::{EmbeddedError, assert_installed};

/// `yes` installs PostgreSQL without asking, if it is missing.
const INSTALL: &str = "INTAKE_TEST_INSTALL";

/// Installs PostgreSQL's programs if they are missing, after a yes: from the person at the terminal, or by a variable.
pub(crate) fn install_postgres() {
    // One test asks, and the others wait for what comes of it.
    let turn = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).expect("the file can be read");
    turn.lock().expect("the file can be locked");
    let Err(EmbeddedError::NotInstalled(Some(command))) = assert_installed(None) else { return };
    let is_yes = std::env::var_os(INSTALL).is_some_and(|value| value == "yes");
    let is_at_terminal = stdin().is_terminal() && stderr().is_terminal();
    if !command.may_run() {
        return;
    }
    if !is_yes && !is_at_terminal {
        end_for_want_of(&format!("`{INSTALL}=yes cargo test` installs it, by `{command}`"));
    }
    let question = format!("\n\nTests need PostgreSQL 15 or newer. This installs it:\n\n  {command}\n\nRun it? [Y/n] ");
    let mut answer = String::new();
    if !is_yes {
        // Not by a macro: what those print belongs to the test and is kept back.
        let _ = stderr().write_all(question.as_bytes());
        let _ = stdin().read_line(&mut answer);
    }
    if is_yes || ["\n", "y\n", "yes\n"].contains(&answer.to_ascii_lowercase().as_str()) {
        command.run().expect("a shell starts");
    }
}

/// Ends all tests of this program with one line, where each would fail with the same.
pub(crate) fn end_for_want_of(error: &dyn Display) -> ! {
    let _ = writeln!(stderr(), "\ntests need PostgreSQL: {error}");
    std::process::exit(1)
}
