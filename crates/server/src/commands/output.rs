//! What commands print: text for people, or one JSON value.

use std::io::Write;

use anyhow::Context;
use serde_json::Value;

use crate::settings::arguments::Output;

/// Prints a text and ends the line. A reader that closes the pipe early is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match write(text) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("the result cannot be printed"),
    }
}

fn write(text: &str) -> std::io::Result<()> {
    writeln!(std::io::stdout().lock(), "{text}")
}

/// Prints what was made and can be shown only now. `unprinted` says what to do where nobody has seen it.
pub(crate) fn print_made(
    output: &Output,
    value: &Value,
    text: &str,
    unprinted: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    let json = output.json.then(|| value.to_string());
    write(json.as_deref().unwrap_or(text)).context("the result cannot be printed").with_context(unprinted)
}

/// Prints a result in the form that was asked for.
pub(crate) fn print_result(output: &Output, value: &Value, text: &str) -> anyhow::Result<()> {
    if output.json { print(&value.to_string()) } else { print(text) }
}
