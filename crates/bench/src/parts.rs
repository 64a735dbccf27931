//! `just bench-parts`: what the service needs for a create, in counts, which vary less than times: instructions, system
//! calls, memory and threads that are woken. A tool that is missing leaves out its row.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use intake_test_support::processes;

use crate::load::Listener;
use crate::stage::{PostgresServer, Stage};

/// Connections of the load whose instructions are counted.
const CALLGRIND_CONNECTIONS: usize = 64;
/// Makes the C library clear and copy memory in loops: the processor has an instruction for that, of which valgrind
/// counts each byte.
const LOOPS: &str = "glibc.cpu.x86_rep_stosb_threshold=1048576:glibc.cpu.x86_rep_movsb_threshold=1048576";
/// Number of times that the time from start to ready is measured.
const STARTS: usize = 9;
/// Time for which a service rests before its memory is read.
const REST: Duration = Duration::from_secs(2);

/// Measures everything, and returns a table.
pub(crate) fn measure(
    postgres: &PostgresServer,
    program: &Path,
    settings: &[String],
    time: Duration,
) -> anyhow::Result<String> {
    let mut table = String::from("| What | Measured | At most | How |\n|---|---:|---:|---|\n");
    let mut row = |what: &str, measured: anyhow::Result<String>, most: &str, how: &str| {
        eprintln!("{what}");
        let measured = measured.unwrap_or_else(|why| format!("left out: {why:#}"));
        table.push_str(&format!("| {what} | {measured} | {most} | {how} |\n"));
    };
    let mut stage = Stage::build(postgres, "parts", program, settings)?;
    let counted = instructions(postgres, program, settings, time).map_err(|why| format!("{why:#}"));
    let counted =
        |show: fn(&Instructions) -> String| counted.as_ref().map(show).map_err(|why| anyhow::anyhow!("{why}"));
    row(
        "user-mode instructions for a create, 64 connections",
        counted(|of| format!("{:.0}", of.all)),
        "60,000",
        "`valgrind --tool=callgrind`, counted with `callgrind_control --zero` and `--dump` around a load by `wrk`",
    );
    row("of these, to find doubts", counted(Instructions::share_of_doubts), "1 %", "`callgrind_annotate --inclusive`");
    row(
        "system calls for a create, 128 connections",
        system_calls(&mut stage, time).map(|count| format!("{count:.2}")),
        "2.2",
        "`perf stat --event raw_syscalls:sys_enter --pid`, or else `strace -f -c -p`",
    );
    row(
        "threads woken for a lone create, PostgreSQL's among them",
        stage.wakes_for_a_create(time).map(|count| format!("{:.1}", count + 1.0)),
        "3",
        "`voluntary_ctxt_switches` in `/proc/PID/task/*/status` with one connection, and one for PostgreSQL's",
    );
    let start = stage.median_start(STARTS).map(|start| format!("{} ms", start.as_millis()));
    row("start to ready, migrated database", start, "60 ms", "median of 9 starts until `/readyz` is 200");
    std::thread::sleep(REST);
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / 1024.0 / 1024.0);
    row("resident memory, idle", stage.resident_memory().map(mib), "14 MiB", "`VmRSS` in `/proc/PID/status`");
    for (connections, most) in [(128, "20 MiB"), (512, "32 MiB")] {
        let peak = stage
            .median_start(1)
            .and_then(|_| stage.load(Listener::Plain, connections, time))
            .and_then(|_| stage.peak_memory());
        let what = format!("resident memory at its peak, {connections} connections");
        row(&what, peak.map(mib), most, "`VmHWM` in `/proc/PID/status` of a service that was just started");
    }
    Ok(table)
}

/// Instructions for a create.
struct Instructions {
    all: f64,
    /// Those of [`NewPatient::doubts`](intake_domain::NewPatient::doubts).
    doubts: f64,
}

impl Instructions {
    fn share_of_doubts(&self) -> String {
        format!("{:.2} %", 100.0 * self.doubts / self.all)
    }
}

fn instructions(
    postgres: &PostgresServer,
    program: &Path,
    settings: &[String],
    time: Duration,
) -> anyhow::Result<Instructions> {
    ensure!(is_there("valgrind"), "valgrind is missing (Debian: apt install valgrind)");
    let folder = postgres.folder().join("callgrind");
    fs::create_dir(&folder)?;
    let (script, counts) = (folder.join("intake"), folder.join("counts"));
    let run = format!(
        "#!/bin/sh\nGLIBC_TUNABLES={LOOPS} exec valgrind --quiet --tool=callgrind --fair-sched=yes \
            --callgrind-out-file={} {} \"$@\"\n",
        counts.display(),
        program.canonicalize()?.display()
    );
    fs::write(&script, run)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    // No request may give up because the tool makes it slow.
    let settings = [settings, &["INTAKE_DEADLINE=60s".to_owned()]].concat();
    let stage = Stage::build(postgres, "instructions", &script, &settings)?;
    stage.load_slowly(CALLGRIND_CONNECTIONS, time)?;
    control(&stage, "--zero")?;
    let creates = stage.load_slowly(CALLGRIND_CONNECTIONS, time)?;
    ensure!(creates > 0, "nothing was stored");
    control(&stage, "--dump")?;
    let dump: PathBuf = format!("{}.1", counts.display()).into();
    let output = Command::new("callgrind_annotate").args(["--inclusive=yes", "--threshold=100"]).arg(&dump).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let count = |end: &str| {
        let line = text.lines().find(|line| line.split(" [").next().unwrap_or_default().ends_with(end));
        let count = line.context(format!("callgrind counted nothing of {end}"))?.split_whitespace().next();
        anyhow::Ok(count.unwrap_or_default().replace(',', "").parse::<f64>()? / creates as f64)
    };
    Ok(Instructions { all: count("PROGRAM TOTALS")?, doubts: count("::doubts")? })
}

fn control(stage: &Stage<'_>, what: &str) -> anyhow::Result<()> {
    let output = Command::new("callgrind_control").args([what, &stage.process().to_string()]).output()?;
    ensure!(output.status.success(), "callgrind_control {what}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn system_calls(stage: &mut Stage<'_>, time: Duration) -> anyhow::Result<f64> {
    let process = stage.process().to_string();
    let perf = ["stat", "--field-separator", ",", "--event", "raw_syscalls:sys_enter", "--pid", &process];
    let by_perf = count_during("perf", &perf, stage, time, |said| {
        said.lines().find(|line| line.contains("sys_enter"))?.split(',').next()?.parse().ok()
    });
    let Err(no_perf) = by_perf else { return by_perf };
    count_during("strace", &["-f", "-c", "-p", &process], stage, time, |said| {
        said.lines().find(|line| line.trim_end().ends_with("total"))?.split_whitespace().nth(3)?.parse().ok()
    })
    .with_context(|| format!("{no_perf:#}"))
}

/// Runs a tool during a load. Returns what it counted for each create.
fn count_during(
    tool: &str,
    arguments: &[&str],
    stage: &mut Stage<'_>,
    time: Duration,
    count: impl Fn(&str) -> Option<f64>,
) -> anyhow::Result<f64> {
    ensure!(is_there(tool), "{tool} is missing (Debian: apt install {tool})");
    stage.load(Listener::Plain, 128, time)?;
    let mut command = Command::new(tool);
    let running = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let before = stage.acknowledged();
    let loaded = stage.load(Listener::Plain, 128, time);
    let creates = stage.acknowledged() - before;
    let said = end(running)?;
    loaded?;
    let counted = count(&said).with_context(|| format!("{tool}: {}", said.trim()))?;
    ensure!(counted > 0.0, "{tool} counted nothing");
    Ok(counted / creates as f64)
}

fn end(mut tool: Child) -> anyhow::Result<String> {
    if tool.try_wait()?.is_none() {
        processes::send("INT", &tool.id().to_string());
    }
    Ok(String::from_utf8_lossy(&tool.wait_with_output()?.stderr).into_owned())
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}
