//! The program `intake-import`: moves the patients of a file into the register through the API, each once, however
//! often it is run and wherever it is killed.

mod arguments;
mod check;
mod columns;
mod counted;
mod dates;
mod earlier;
mod once;
mod pace;
mod phones;
mod preflight;
mod progress;
mod report;
mod rows;
mod run;
mod secret;
mod sender;
mod strict_csv;

use std::fs;
use std::io::{Write as _, stderr, stdout};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Parser;

use arguments::Arguments;
use counted::counted;
use run::Totals;
use sender::Sender;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut totals = Totals::default();
    let ended = sender(&arguments).and_then(|sender| run::run(&arguments, sender.as_ref(), &mut totals));
    if ended.is_ok() || totals.rows > 0 {
        let stopped = if ended.is_ok() { "" } else { "stopped after " };
        // If standard error cannot be written, because the disk is full, the exit status remains.
        let _ = writeln!(stdout(), "{stopped}{}", summary(&totals, arguments.check));
    }
    match ended {
        Ok(()) if totals.refused == 0 => ExitCode::SUCCESS,
        Ok(()) => ExitCode::FAILURE,
        Err(error) => {
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

fn summary(totals: &Totals, is_check: bool) -> String {
    let Totals { rows, valid, created, created_before, refused, repeated, phones_rewritten } = totals;
    let mut text = if is_check {
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
    if *phones_rewritten > 0 {
        text.push_str(&format!("\n{} rewritten as E.164", counted(*phones_rewritten, "phone number")));
    }
    text
}
