//! `just torture`: see the library.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Parser;
use intake_torture::{Plan, run};

/// Makes the service fail in every way and counts what was lost
#[derive(Parser)]
struct Arguments {
    /// Repeats the random choices of an earlier run
    #[arg(long)]
    seed: Option<u64>,
    /// Number of times that services are killed
    #[arg(long, default_value_t = 200)]
    service_kills: u64,
    /// Number of times that PostgreSQL is killed
    #[arg(long, default_value_t = 200)]
    database_kills: u64,
    /// Number of patients that are acknowledged while connections to PostgreSQL are cut
    #[arg(long, default_value_t = 100_000)]
    database_cut_patients: u64,
    /// Number of times that packets to PostgreSQL are dropped for a while (needs root and ip)
    #[arg(long, default_value_t = 10)]
    packet_drops: u64,
    /// Number of patients that are acknowledged while answers are cut
    #[arg(long, default_value_t = 20_000)]
    answer_cut_patients: u64,
    /// Number of times that 64 clients race with one Idempotency-Key
    #[arg(long, default_value_t = 200)]
    races: u64,
    /// Number of keys that are revoked while they are used
    #[arg(long, default_value_t = 10_000)]
    revocations: u64,
    /// Number of times that the disk is filled (needs root, XFS and loop devices)
    #[arg(long, default_value_t = 20)]
    disk_fills: u64,
    /// Number of times that the power is cut (needs root, XFS and loop devices)
    #[arg(long, default_value_t = 50)]
    power_cuts: u64,
    /// Number of times that all of PostgreSQL is frozen, in turns for less and for more than the deadline
    #[arg(long, default_value_t = 20)]
    database_stops: u64,
    /// Number of times that the process of PostgreSQL that a writer talks to is frozen
    #[arg(long, default_value_t = 10)]
    backend_stops: u64,
    /// Number of times that a transaction holds a row that clients send
    #[arg(long, default_value_t = 20)]
    locked_rows: u64,
    /// Number of times that a service is started with a wrong clock (needs libfaketime)
    #[arg(long, default_value_t = 20)]
    wrong_clocks: u64,
    /// Number of times that nobody reads the logs of the services for a while
    #[arg(long, default_value_t = 10)]
    unread_logs: u64,
    /// Number of times that a standby is promoted
    #[arg(long, default_value_t = 5)]
    promotions: u64,
    /// Number of times that the register is restored to a moment of the past
    #[arg(long, default_value_t = 3)]
    restores: u64,
    /// Number of times that durability is turned off for the service's role or database, and PostgreSQL killed
    #[arg(long, default_value_t = 15)]
    drifts: u64,
    /// Number of nodes that die or hang, shards that move, services that are killed (needs a cluster: docs/scale.md)
    #[arg(long, default_value_t = 40)]
    cluster_faults: u64,
    /// Seconds that each of the floods lasts
    #[arg(long, default_value_t = 10)]
    flood_seconds: u64,
    /// Minutes for which all faults strike at once
    #[arg(long, default_value_t = 10)]
    mixed_minutes: u64,
    /// Factor by which everything may take longer than promised, on a machine that has other work
    #[arg(long, default_value_t = 1)]
    slowness: u32,
    /// The program to torture, instead of the one beside this
    #[arg(long)]
    program: Option<PathBuf>,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let beside = std::env::current_exe()?.with_file_name("intake");
    let program = arguments.program.unwrap_or(beside);
    anyhow::ensure!(program.exists(), "{} is not there: cargo build --release", program.display());
    #[expect(clippy::disallowed_methods, reason = "any number will do")]
    let seed =
        arguments.seed.map_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).map(|time| time.as_secs()), Ok)?;
    println!("seed {seed}");
    let plan = Plan {
        program,
        seed,
        tampering: true,
        service_kills: arguments.service_kills,
        database_kills: arguments.database_kills,
        database_cut_patients: arguments.database_cut_patients,
        packet_drops: arguments.packet_drops,
        answer_cut_patients: arguments.answer_cut_patients,
        races: arguments.races,
        revocations: arguments.revocations,
        disk_fills: arguments.disk_fills,
        power_cuts: arguments.power_cuts,
        database_stops: arguments.database_stops,
        backend_stops: arguments.backend_stops,
        locked_rows: arguments.locked_rows,
        wrong_clocks: arguments.wrong_clocks,
        unread_logs: arguments.unread_logs,
        promotions: arguments.promotions,
        restores: arguments.restores,
        drifts: arguments.drifts,
        cluster_faults: arguments.cluster_faults,
        flood: Duration::from_secs(arguments.flood_seconds),
        mixed: Duration::from_secs(60 * arguments.mixed_minutes),
        slowness: arguments.slowness,
    };
    let verdict = run(&plan, |step| eprintln!("{step}"))?;
    println!("\n{}", verdict.to_text());
    Ok(if verdict.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
