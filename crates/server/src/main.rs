//! The program `intake`: reads its settings, connects the crates, serves, and ends cleanly.

mod backend;
mod clock;
mod commands;
mod export;
mod first_run;
mod log_output;
mod process_metrics;
mod serving;
mod settings;
mod signals;
mod telemetry;
mod tls_advice;
#[cfg_attr(not(feature = "otlp"), path = "no_traces.rs")]
mod traces;

use std::io::{Write as _, stderr};
use std::process::ExitCode;

use clap::Parser;

use settings::Settings;
use settings::command_line::{Command, CommandLine};
use settings::configuration::Configuration;

/// Chosen by measuring: see docs/decisions/0017-choices-by-measurement.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit status of a failed run; wrong usage is 2.
const FAILED: u8 = 1;

fn main() -> ExitCode {
    let CommandLine { command, yes, flags, .. } = CommandLine::parse();
    intake_infra::clock::listen(clock::compare);
    let settings = Settings { flags: &flags, variable: &|name| std::env::var(name) };
    let command = command.unwrap_or(Command::Serve);
    let complain = if matches!(command, Command::Serve) { telemetry::note_end } else { complain };
    let ended = run(command, yes, &settings);
    if let Err(error) = &ended {
        complain(error);
    }
    telemetry::flush();
    if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) }
}

fn configuration(settings: &Settings<'_>, yes: bool) -> anyhow::Result<Configuration> {
    let configuration = Configuration::read(settings)?;
    // Before anything listens for signals: Ctrl-C at the question ends the program.
    first_run::install_offer::install_postgres(&configuration, yes)?;
    Ok(configuration)
}

fn run(command: Command, yes: bool, settings: &Settings<'_>) -> anyhow::Result<()> {
    match command {
        Command::Serve => serving::serve(|| configuration(settings, yes)),
        Command::Operator(command) => commands::run(command, || configuration(settings, yes)),
        Command::Probe { ready } => {
            let admin = settings.get_as(&settings::ADMIN_ADDR, settings::values::address)?;
            commands::probe::probe(admin, if ready { "/readyz" } else { "/livez" })
        }
        Command::Help { topic } => commands::output::print(&settings::help::text_of(topic)),
        Command::Openapi { .. } => commands::output::print(intake_http::openapi("https://localhost:8443").trim_end()),
    }
}

/// Prints an error of a command in one line. Where that is impossible, the exit status says it alone.
fn complain(error: &anyhow::Error) {
    let _ = writeln!(stderr(), "intake: {}", telemetry::one_line(error));
}
