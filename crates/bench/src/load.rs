//! The closed loop: wrk, with as many connections as asked for, each sending its next request when the last is
//! answered.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;

const SCRIPT: &str = include_str!("load.lua");

/// Receiver of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    /// TLS ends in the service.
    Https,
    /// TLS has ended in a proxy in front.
    Plain,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    /// Acknowledged patients a second.
    pub(crate) creates: f64,
    /// In milliseconds, of all answers.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// Microseconds of processor time for each acknowledged patient.
    pub(crate) service_cpu: f64,
    pub(crate) postgres_cpu: f64,
}

/// Report of wrk.
pub(crate) struct Seen {
    pub(crate) answers: u64,
    /// Answers that were not 201.
    pub(crate) refused: u64,
    pub(crate) time: Duration,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// wrk is packaged by every distribution; Debian's is installed where it is missing.
pub(crate) fn ensure_installed() -> anyhow::Result<()> {
    let is_there = || Command::new("wrk").arg("--version").output().is_ok();
    if is_there() {
        return Ok(());
    }
    let as_root: &[&str] = if rustix::process::geteuid().is_root() { &[] } else { &["sudo"] };
    let install = [as_root, &["apt-get", "install", "-qq", "--no-install-recommends", "wrk"]].concat();
    if let [program, arguments @ ..] = install.as_slice() {
        let _ = Command::new(program).args(arguments).env("DEBIAN_FRONTEND", "noninteractive").status();
    }
    anyhow::ensure!(is_there(), "the load generator wrk is missing: install the package wrk");
    Ok(())
}

/// Sends the requests of a file as fast as the answers come.
pub(crate) fn run(url: &str, requests: &Path, connections: usize, time: Duration) -> anyhow::Result<Seen> {
    let script = requests.with_file_name("load.lua");
    std::fs::write(&script, SCRIPT)?;
    let output = Command::new("wrk")
        .arg(format!("--threads={}", connections.min(2)))
        .arg(format!("--connections={connections}"))
        .arg(format!("--duration={}s", time.as_secs()))
        .arg("--timeout=10s")
        .arg("--script")
        .arg(&script)
        .arg(url)
        .arg("--")
        .arg(requests)
        .output()
        .context("wrk does not run")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let result = text
        .lines()
        .find_map(|line| line.strip_prefix("RESULT "))
        .with_context(|| format!("wrk failed: {text}{}", String::from_utf8_lossy(&output.stderr)))?;
    let numbers: Vec<f64> = result.split(' ').filter_map(|number| number.parse().ok()).collect();
    let &[answers, microseconds, refused, broken, p50, p99] = numbers.as_slice() else {
        anyhow::bail!("wrk said: {result}");
    };
    anyhow::ensure!(broken == 0.0, "{broken} connections broke or timed out");
    let count = |number: f64| format!("{number:.0}").parse::<u64>();
    Ok(Seen {
        answers: count(answers)?,
        refused: count(refused)?,
        time: Duration::from_secs_f64(microseconds / 1e6),
        p50: p50 / 1e3,
        p99: p99 / 1e3,
    })
}

pub(crate) fn median(runs: &[Run]) -> Run {
    let middle = |of: fn(&Run) -> f64| crate::median::median(runs.iter().map(of).collect());
    Run {
        creates: middle(|run| run.creates),
        p50: middle(|run| run.p50),
        p99: middle(|run| run.p99),
        service_cpu: middle(|run| run.service_cpu),
        postgres_cpu: middle(|run| run.postgres_cpu),
    }
}
