//! The program `intake`: reads its settings, connects the crates, serves, and ends cleanly.

mod admin;
mod backend;
mod certificate_files;
mod certificates;
mod command_line;
mod commands;
mod configuration;
mod data_dir;
mod database_addresses;
mod export;
mod first_run;
mod greeting;
mod install_offer;
mod listeners;
mod local_ca;
mod mails;
mod origin_watch;
mod patient;
mod private_file;
mod process_metrics;
mod readiness;
mod restored;
mod running;
mod serve;
mod setting_values;
mod settings;
mod signals;
mod sockets;
mod systemd;
mod telemetry;
mod tls_advice;

use std::process::ExitCode;

use clap::Parser;

use command_line::{Command, CommandLine};
use configuration::Configuration;
use settings::Settings;

/// Chosen by measuring: see docs/performance.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit status of a failed run; wrong usage is 2.
const FAILED: u8 = 1;

fn main() -> ExitCode {
    match run(CommandLine::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::from(FAILED)
        }
    }
}

fn run(command_line: CommandLine) -> anyhow::Result<()> {
    let CommandLine { command, flags } = command_line;
    let configuration = || {
        let configuration = Configuration::read(&Settings { flags: &flags, variable: &|name| std::env::var(name) })?;
        // Before anything listens for signals: Ctrl-C at the question ends the program.
        install_offer::offer_postgres(&configuration);
        anyhow::Ok(configuration)
    };
    match command.unwrap_or(Command::Serve) {
        Command::Serve => serve::serve(configuration),
        Command::Operator(command) => commands::run(command, &configuration()?),
        Command::Openapi { .. } => commands::print(intake_http::openapi("https://localhost:8443").trim_end()),
    }
}

/// Prints an error with all its causes in one line.
#[expect(clippy::print_stderr, reason = "the place where errors leave the program")]
fn complain(error: &anyhow::Error) {
    let line = format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ");
    eprintln!("intake: {line}");
}
