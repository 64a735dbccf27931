//! The program `intake-import`: moves the patients of a file into the register through the API, each once, however
//! often it is run and wherever it is killed.

mod arguments;
mod check;
mod columns;
mod convert;
mod counted;
mod date_forms;
mod earlier;
mod header_row;
mod headers;
mod json_lines;
mod names;
mod once;
mod pace;
mod phones;
mod preflight;
mod progress;
mod proposal;
mod report;
mod rows;
mod run;
mod secret;
mod sender;
mod strict_csv;
mod suspicions;
mod table;
mod tally;
mod trial;
mod workbook;

use std::fs;
use std::io::{Write as _, stderr, stdout};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Parser;

use arguments::Arguments;
use counted::counted;
use headers::left_out;
use proposal::Proposal;
use run::Totals;
use sender::Sender;
use suspicions::LOOK;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.propose {
        return ended(Proposal::make(&arguments).and_then(|proposal| proposal.print()), true);
    }
    let mut totals = Totals::default();
    let outcome = sender(&arguments).and_then(|sender| run::run(&arguments, sender.as_ref(), &mut totals));
    let outcome = if outcome.is_ok() || totals.rows > 0 { told(outcome, &totals, &arguments) } else { outcome };
    ended(outcome, totals.refused == 0 && !totals.is_untold)
}

/// Prints what has become of the rows. Where that fails, the error says how many there are.
fn told(outcome: anyhow::Result<()>, totals: &Totals, arguments: &Arguments) -> anyhow::Result<()> {
    let stopped = if outcome.is_ok() { "" } else { "stopped after " };
    let summary = format!("{stopped}{}", summary(totals, arguments));
    let Err(unprinted) = writeln!(stdout(), "{summary}") else { return outcome };
    let outcome = outcome.and_then(|()| Err(unprinted).context("the result cannot be printed"));
    outcome.with_context(|| summary.lines().next().unwrap_or_default().to_owned())
}

fn ended(outcome: anyhow::Result<()>, is_complete: bool) -> ExitCode {
    match outcome {
        Ok(()) if is_complete => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        Err(error) => {
            // If standard error cannot be written, because the disk is full, the exit status remains.
            let _ = writeln!(stderr(), "intake-import: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Nothing is sent by a check.
fn sender(arguments: &Arguments) -> anyhow::Result<Option<Sender>> {
    let (Some(url), Some(key_file), false) = (&arguments.url, &arguments.key_file, arguments.check) else {
        return Ok(None);
    };
    let key = fs::read_to_string(key_file).with_context(|| format!("--key-file {}", key_file.display()))?;
    let key = key.trim();
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!("--key-file {}: the file must hold an API key and nothing else", key_file.display());
    }
    Sender::new(url, key, arguments.cacert.as_deref(), arguments.in_flight).map(Some)
}

fn summary(totals: &Totals, arguments: &Arguments) -> String {
    let Totals { rows, valid, created, created_before, refused, repeated, changes, suspicions, .. } = totals;
    let mut text = if arguments.check {
        format!("{}: {valid} valid, {refused} refused; nothing was sent", counted(*rows, "row"))
    } else {
        format!("{}: {created} created, {created_before} created before, {refused} refused", counted(*rows, "row"))
    };
    if *repeated > 0 {
        let repeated = match repeated {
            1 => "1 row is".to_owned(),
            repeated => format!("{repeated} rows are"),
        };
        text.push_str(&format!("\n{repeated} the same as an earlier one in every field: twins, or entered twice?"));
    }
    for line in left_out(&arguments.map).iter().chain(&totals.repeated_headers) {
        text.push_str(&format!("\n{line}"));
    }
    let changes = changes.section("changed as the options say", 1);
    for section in changes.into_iter().chain(suspicions.section(LOOK, 1)) {
        text.push_str(&format!("\n{section}"));
    }
    text
}
