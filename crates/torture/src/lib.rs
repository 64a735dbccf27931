//! Pulls every plug of a running service while clients write down what they send and what they are told, and then holds the
//! register against what they wrote. First it shows that it can see: without durability it must report losses.

mod arena;
mod audit;
mod disk;
mod faults;
mod journal;
mod people;
mod proxy;
mod races;
mod random;
mod route;
mod traffic;

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use intake_infra::embedded::Durability;

pub use audit::Findings;

use arena::Ground;
use faults::Scene;

/// How hard to pull.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program `intake`.
    pub program: PathBuf,
    /// Of all chance.
    pub seed: u64,
    /// How often services are killed.
    pub service_kills: u64,
    /// How often PostgreSQL is killed.
    pub database_kills: u64,
    /// How many patients are acknowledged while connections to the database are cut.
    pub database_cut_patients: u64,
    /// How often packets to PostgreSQL are dropped for a while.
    pub packet_drops: u64,
    /// How many patients are acknowledged while answers are cut.
    pub answer_cut_patients: u64,
    /// How often 64 clients race with one key of safe retry.
    pub races: u64,
    /// How many keys are revoked while they are used.
    pub revocations: u64,
    /// How often the disk is filled.
    pub disk_fills: u64,
    /// How often the power is cut.
    pub power_cuts: u64,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Verdict {
    lines: Vec<Line>,
    /// What could not be tried, and why.
    pub left_out: Vec<String>,
}

#[derive(Debug)]
struct Line {
    fault: &'static str,
    is_control: bool,
    times: u64,
    found: Findings,
    time: Duration,
}

/// Carries out a plan. `tell` is told of each step.
pub fn run(plan: &Plan, tell: impl Fn(&str)) -> anyhow::Result<Verdict> {
    let folder = tempfile::Builder::new().prefix("intake-torture-").tempdir()?;
    // PostgreSQL runs under another account than root, and passes through.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711))?;
    let scene = Scene { program: &plan.program, folder: folder.path(), seed: plan.seed };
    let mut verdict = Verdict::default();
    let (no_disk, no_route) = (disk::is_missing(), route::is_missing());
    verdict.left_out.extend(no_disk.map(|why| format!("a full disk and power cuts: {why}")));
    verdict.left_out.extend(no_route.map(|why| format!("dropped packets: {why}")));

    let mut step = |fault, is_control, act: &mut dyn FnMut() -> anyhow::Result<(u64, Findings)>| {
        tell(fault);
        let started = Instant::now();
        let (times, found) = act()?;
        verdict.lines.push(Line { fault, is_control, times, found, time: started.elapsed() });
        anyhow::Ok(())
    };
    step("PostgreSQL killed, synchronous_commit off", true, &mut || Ok((1, scene.control_kill()?)))?;
    if no_disk.is_none() {
        step("power cut, fsync off", true, &mut || Ok((1, scene.control_power()?)))?;
    }
    let ground = Ground::prepare(folder.path(), Durability::Full)?;
    step("service killed", false, &mut || scene.kill_services(&ground, plan.service_kills))?;
    step("PostgreSQL killed", false, &mut || scene.kill_database(&ground, plan.database_kills))?;
    step("connection to PostgreSQL cut", false, &mut || scene.cut_database(&ground, plan.database_cut_patients))?;
    if no_route.is_none() {
        step("packets to PostgreSQL dropped", false, &mut || scene.drop_packets(&ground, plan.packet_drops))?;
    }
    step("answer cut", false, &mut || scene.cut_answers(&ground, plan.answer_cut_patients))?;
    step("64 clients, one Idempotency-Key", false, &mut || scene.race(&ground, plan.races))?;
    step("key revoked in use", false, &mut || scene.revoke(&ground, plan.revocations))?;
    if no_disk.is_none() {
        step("disk full", false, &mut || scene.fill_disk(plan.disk_fills))?;
        step("power cut", false, &mut || scene.cut_power(plan.power_cuts))?;
    }
    Ok(verdict)
}

impl Verdict {
    /// Whether every control saw a loss, and nothing else did.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.lines.iter().all(|line| if line.is_control { line.found.lost > 0 } else { line.found.is_good() })
    }

    /// A table, and the verdict in words.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::from(
            "| fault | times | acknowledged | outcome unknown at first | lost | doubled | phantom | altered | wrong organisation | wrong answer | seconds |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for Line { fault, is_control, times, found, time } in &self.lines {
            let role = if *is_control { "control: " } else { "" };
            let Findings { acknowledged, unknown, lost, doubled, phantom, altered, misplaced, wrong, .. } = found;
            let _ = writeln!(
                text,
                "| {role}{fault} | {times} | {acknowledged} | {unknown} | {lost} | {doubled} | {phantom} | {altered} | {misplaced} | {wrong} | {:.0} |",
                time.as_secs_f64()
            );
        }
        for line in self.lines.iter().filter(|line| !line.is_control) {
            for example in &line.found.examples {
                let _ = writeln!(text, "{}: {example}", line.fault);
            }
        }
        for left_out in &self.left_out {
            let _ = writeln!(text, "left out: {left_out}");
        }
        let blind = self.lines.iter().filter(|line| line.is_control && line.found.lost == 0);
        for line in blind {
            let _ = writeln!(text, "blind: a control lost nothing: {}", line.fault);
        }
        text + if self.is_good() { "verdict: good\n" } else { "verdict: BAD\n" }
    }
}
