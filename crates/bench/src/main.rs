//! `just bench`: how many patients a second the service stores durably, how long each takes and what it costs, compared
//! with pgbench on the same PostgreSQL in the same run. On a noisy machine, only ratios within one run are comparable.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

mod beside;
mod chart;
mod cluster;
mod crowd;
mod fairness;
mod load;
mod median;
mod neighbours;
mod open_loop;
mod parts;
mod pgbench;
mod report;
mod requests;
mod sizes;
mod stage;
mod wal;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser;

use crate::load::Listener;
use crate::median::median;
use crate::report::{Measured, Report};
use crate::stage::{PostgresServer, Stage};

/// The embedded PostgreSQL accepts few more clients than this.
const PGBENCH_CLIENTS_MAX: usize = 190;
/// One client, a few, a busy day, an attack.
const CONNECTIONS: [usize; 5] = [1, 8, 32, 128, 512];
/// Connections of the open loop: enough that no request waits for a free one.
const OPEN_LOOP_CONNECTIONS: usize = 64;

/// The service's default.
const USUAL_RATE_LIMIT: &str = "100/1000";

/// Measures intake beside pgbench
#[derive(Parser)]
struct Arguments {
    /// Number of times that everything is measured; the table has medians
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds that each measurement takes
    #[arg(long, default_value_t = 6)]
    seconds: u64,
    /// Number of patients in the large table; 0 leaves it out
    #[arg(long, default_value_t = 10_000_000)]
    rows: u64,
    /// The numbers of connections, instead of 1, 8, 32, 128 and 512
    #[arg(long, value_delimiter = ',')]
    connections: Vec<usize>,
    /// Measures only how a crowd of clients, stalled clients and noisy neighbours affect others
    #[arg(long)]
    crowd: bool,
    /// Measures only the noisy neighbours of these
    #[arg(long)]
    neighbours: bool,
    /// Measures only another build of the program and this one, in turns
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["crowd", "neighbours"])]
    beside: Option<PathBuf>,
    /// Counts only what a create needs: instructions, system calls, memory, threads that are woken
    #[arg(long, conflicts_with_all = ["crowd", "neighbours", "beside"])]
    parts: bool,
    /// Measures only what PostgreSQL writes to its log for a patient, and vacuums of a table of --rows
    #[arg(long, conflicts_with = "crowd")]
    wal: bool,
    /// Measures only a Citus cluster beside one PostgreSQL (needs a cluster on this machine: docs/scale.md)
    #[arg(long, conflicts_with_all = ["crowd", "wal"])]
    cluster: bool,
    /// Measures only the disk, log and archive of docs/operations/sizes.md, and compares with it
    #[arg(long, conflicts_with_all = ["crowd", "neighbours", "beside", "parts", "wal", "cluster"])]
    sizes: bool,
    /// Number of organisations that send patients, with --wal
    #[arg(long, default_value_t = 1_000, requires = "wal")]
    organisations: usize,
    /// The program to measure, instead of the one beside this
    #[arg(long)]
    program: Option<PathBuf>,
    /// A setting of the service, for example the level of its log
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Folder for table and chart
    #[arg(long, default_value = "target/bench")]
    output: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if !arguments.sizes {
        load::ensure_installed()?;
    }
    let beside = std::env::current_exe()?.with_file_name("intake");
    let program = arguments.program.clone().unwrap_or(beside);
    anyhow::ensure!(program.exists(), "{} is not there: cargo build --release", program.display());
    fs::create_dir_all(&arguments.output)?;
    if let Some(other) = &arguments.beside {
        let table = measure_beside(&arguments, &program, other)?;
        println!("\n{table}");
        return Ok(fs::write(arguments.output.join("beside.md"), table)?);
    }
    if arguments.sizes {
        return measure_sizes(&arguments, &program);
    }
    if arguments.parts {
        let time = Duration::from_secs(arguments.seconds);
        let table = parts::measure(&PostgresServer::prepare()?, &program, &arguments.settings, time)?;
        println!("\n{table}");
        return Ok(fs::write(arguments.output.join("parts.md"), table)?);
    }
    if arguments.crowd || arguments.neighbours {
        let table = measure_crowd(&arguments, &program)?;
        println!("\n{table}");
        return Ok(fs::write(arguments.output.join("crowd.md"), table)?);
    }
    if arguments.cluster {
        let (mut table, time) = (String::new(), Duration::from_secs(arguments.seconds));
        cluster::measure(&program, &arguments.settings, arguments.rounds, time, &mut table)?;
        println!("\n{table}");
        return Ok(fs::write(arguments.output.join("cluster.md"), table)?);
    }
    if arguments.wal {
        let table = measure_wal(&arguments, &program)?;
        println!("\n{table}");
        return Ok(fs::write(arguments.output.join("wal.md"), table)?);
    }
    let report = measure(&arguments, &program)?;
    let text = report.to_text();
    println!("\n{text}");
    let (table, drawing) = (arguments.output.join("report.md"), arguments.output.join("creates.svg"));
    fs::write(&table, &text)?;
    fs::write(&drawing, chart::draw(&report))?;
    println!("Written: {} and {}", table.display(), drawing.display());
    Ok(())
}

fn measure_sizes(arguments: &Arguments, program: &Path) -> anyhow::Result<()> {
    let table = sizes::measure(&PostgresServer::prepare()?, program, &arguments.settings)?;
    println!("\n{table}");
    fs::write(arguments.output.join("sizes.md"), &table)?;
    sizes::compare(&table, &fs::read_to_string("docs/operations/sizes.md")?)
}

fn measure_crowd(arguments: &Arguments, program: &Path) -> anyhow::Result<String> {
    let postgres = PostgresServer::prepare()?;
    let time = Duration::from_secs(arguments.seconds);
    let mut table = String::from("| What | Measured | Must |\n|---|---:|---:|\n");
    if !arguments.neighbours {
        let mut fast = Stage::build(&postgres, "fast", program, &arguments.settings)?;
        let impatient = [&arguments.settings[..], &["INTAKE_DEADLINE=500ms".to_owned()]].concat();
        let mut slow = Stage::build(&postgres, "slow", program, &impatient)?;
        crowd::measure(&mut fast, &mut slow, arguments.rounds, time, &mut table)?;
    }
    let limited_by = |limit: &str| [&arguments.settings[..], &[format!("INTAKE_RATE_LIMIT={limit}")]].concat();
    let limited = Stage::build(&postgres, "limited", program, &limited_by(USUAL_RATE_LIMIT))?;
    let unlimited = Stage::build(&postgres, "unlimited", program, &limited_by("off"))?;
    neighbours::measure(&limited, &unlimited, arguments.rounds, time, &mut table)?;
    let mut fair = Stage::build(&postgres, "fair", program, &arguments.settings)?;
    fairness::measure(&mut fair, arguments.rounds, time, &mut table)?;
    Ok(table)
}

fn measure_beside(arguments: &Arguments, program: &Path, other: &Path) -> anyhow::Result<String> {
    let postgres = PostgresServer::prepare()?;
    let mut this = Stage::build(&postgres, "this", program, &arguments.settings)?;
    let mut other = Stage::build_with_own_schema(&postgres, "other", other, &arguments.settings)?;
    let connections = if arguments.connections.is_empty() { &beside::CONNECTIONS[..] } else { &arguments.connections };
    beside::measure(&mut this, &mut other, connections, arguments.rounds, Duration::from_secs(arguments.seconds))
}

fn measure_wal(arguments: &Arguments, program: &Path) -> anyhow::Result<String> {
    let postgres = PostgresServer::prepare()?;
    let mut stage = Stage::build_for(arguments.organisations, &postgres, "wal", program, &arguments.settings)?;
    let mut tables = String::new();
    wal::measure(&mut stage, arguments.rounds, arguments.rows, Duration::from_secs(arguments.seconds), &mut tables)?;
    Ok(tables)
}

fn measure(arguments: &Arguments, program: &Path) -> anyhow::Result<Report> {
    let time = Duration::from_secs(arguments.seconds);
    let connections: &[usize] = if arguments.connections.is_empty() { &CONNECTIONS } else { &arguments.connections };
    let postgres = PostgresServer::prepare()?;
    let mut stage = Stage::build(&postgres, "bench", program, &arguments.settings)?;
    let mut report = Report { start: stage.median_start(5)?, ..Report::default() };
    report.measured = compare(&mut stage, connections, arguments.rounds, time)?;
    report.peak_memory = stage.peak_memory()?;
    eprintln!("connections over TLS");
    report.tls_connections = (stage.tls_connection(false)?, stage.tls_connection(true)?);

    let peak = report.measured.iter().map(|one| one.plain.creates).fold(0.0, f64::max);
    let pgbench_peak = report.measured.iter().map(|one| one.pgbench.creates).fold(0.0, f64::max);
    let (mut tails, mut pgbench_tails) = (Vec::new(), Vec::new());
    for round in 1..=arguments.rounds {
        eprintln!("round {round}, open loops, each at half its peak rate");
        tails.push(stage.open_loop(peak / 2.0, OPEN_LOOP_CONNECTIONS, time)?);
        pgbench_tails.push(stage.pgbench()?.tail(pgbench_peak / 2.0, OPEN_LOOP_CONNECTIONS, time)?);
    }
    report.open_loop = open_loop::median(&tails);
    report.pgbench_tail = median(pgbench_tails);
    report.commit_latency = median((0..arguments.rounds).map(|_| stage.commit_latency()).collect::<Result<_, _>>()?);

    if arguments.rows > 0 {
        let mut large = Stage::build(&postgres, "large", program, &arguments.settings)?;
        eprintln!("filling a table with {} patients", arguments.rows);
        large.fill_table(arguments.rows)?;
        report.large_table = Some((arguments.rows, large_to_empty(arguments.rounds, &mut stage, &mut large, time)?));
    }
    Ok(report)
}

/// Compares the service with pgbench at each number of connections, in rounds.
fn compare(
    stage: &mut Stage<'_>,
    connections: &[usize],
    rounds: usize,
    time: Duration,
) -> anyhow::Result<Vec<Measured>> {
    let mut runs = vec![(Vec::new(), Vec::new(), Vec::new()); connections.len()];
    for round in 1..=rounds {
        for (&count, (pgbench, https, plain)) in connections.iter().zip(&mut runs) {
            eprintln!("round {round}, {count} connections");
            pgbench.push(stage.pgbench()?.run(count.min(PGBENCH_CLIENTS_MAX), time)?);
            https.push(stage.load(Listener::Https, count, time)?);
            plain.push(stage.load(Listener::Plain, count, time)?);
        }
    }
    let measured = connections.iter().zip(runs).map(|(&connections, (pgbench, https, plain))| Measured {
        connections,
        pgbench: pgbench::median(&pgbench),
        https: load::median(&https),
        plain: load::median(&plain),
    });
    Ok(measured.collect())
}

/// The rate on a large table divided by that on an empty one, measured in turns.
fn large_to_empty(rounds: usize, empty: &mut Stage<'_>, large: &mut Stage<'_>, time: Duration) -> anyhow::Result<f64> {
    let (mut empty_runs, mut large_runs) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        eprintln!("round {round}, an empty and a large table");
        empty.empty_table()?;
        empty_runs.push(empty.load(Listener::Plain, 128, time)?);
        large_runs.push(large.load(Listener::Plain, 128, time)?);
    }
    Ok(load::median(&large_runs).creates / load::median(&empty_runs).creates)
}
