//! What commands print: text for people, or one JSON value. Where it cannot be printed, a command fails, and its error
//! says what was done all the same.

use std::io::{Write, stdout};

use anyhow::Context;
use serde_json::Value;

use crate::settings::arguments::Output;

/// A text as one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Prints a text and ends the line.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    writeln!(stdout().lock(), "{text}").context("the result cannot be printed")
}

/// Prints a result in the form that was asked for.
pub(crate) fn print_result(output: &Output, value: &Value, text: &str) -> anyhow::Result<()> {
    if output.json { print(&value.to_string()) } else { print(text) }
}

/// Prints what was changed. The first paragraph of the text says it.
pub(crate) fn print_change(output: &Output, value: &Value, text: &str) -> anyhow::Result<()> {
    let change = || text.split("\n\n").next().unwrap_or_default().trim().trim_end_matches('.').to_owned();
    print_made(output, value, text, change)
}

/// Prints what was made and can be shown only now. `unprinted` says what to do where nobody has seen it.
pub(crate) fn print_made(
    output: &Output,
    value: &Value,
    text: &str,
    unprinted: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    print_result(output, value, text).with_context(unprinted)
}
