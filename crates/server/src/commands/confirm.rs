//! Asks a person at a terminal before something is done that cannot be undone.

use std::io::{IsTerminal, Write, stderr, stdin};

/// Returns whether there is a person to ask.
pub(crate) fn is_at_terminal() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Asks on the terminal. Everything but a yes is a no, and so is a terminal that cannot be written or read.
pub(crate) fn says_yes(question: &str) -> bool {
    let mut answer = String::new();
    let question = format!("{question} [y/N] ");
    let is_asked = stderr().write_all(question.as_bytes()).is_ok() && stdin().read_line(&mut answer).is_ok();
    // Ctrl-D ends the answer, not the line.
    if !answer.ends_with('\n') {
        let _ = stderr().write_all(b"\n");
    }
    is_asked && ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str())
}
