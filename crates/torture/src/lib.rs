//! Makes a running service fail in every way while clients write down what they send and what is answered, and then
//! compares the register with that journal. Controls come first: without durability it must report losses.

mod arena;
mod audit;
mod cluster;
mod disk;
mod drift;
mod faults;
mod floods;
mod ground;
mod hands;
mod hangs;
mod journal;
mod mixed;
mod people;
mod promotion;
mod proxy;
mod pulse;
mod races;
mod random;
mod reader;
mod route;
mod scene;
mod traffic;
mod verdict;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use intake_infra::Durability;

pub use audit::Findings;
pub use verdict::Verdict;

use floods::FloodKind;
use ground::Ground;
use scene::Scene;
use verdict::Line;

/// How often each fault strikes.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program `intake`.
    pub program: PathBuf,
    /// The seed of all random choices.
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
    /// How often 64 clients race with one idempotency key.
    pub races: u64,
    /// How many keys are revoked while they are used.
    pub revocations: u64,
    /// How often the disk is filled.
    pub disk_fills: u64,
    /// How often the power is cut.
    pub power_cuts: u64,
    /// How often all of PostgreSQL is frozen.
    pub database_stops: u64,
    /// How often the process of PostgreSQL that a writer talks to is frozen.
    pub backend_stops: u64,
    /// How often a transaction holds a row that clients send.
    pub held_rows: u64,
    /// How often a standby is promoted.
    pub promotions: u64,
    /// How often durability is turned off for the service's role or database, and PostgreSQL killed.
    pub drifts: u64,
    /// How often a worker of a Citus cluster dies, a shard moves, or a service of the cluster is killed.
    pub cluster_faults: u64,
    /// How long each of the floods lasts.
    pub flood: Duration,
    /// How long all faults strike at once.
    pub mixed: Duration,
    /// How many times longer than promised requests may wait and services may take to come back: more than 1 where other
    /// programs keep the machine busy.
    pub slowness: u32,
}

/// Carries out a plan. `on_step` is called with the name of each step. A step whose count is 0 is left out.
pub fn run(plan: &Plan, on_step: impl Fn(&str)) -> anyhow::Result<Verdict> {
    let folder = tempfile::Builder::new().prefix("intake-torture-").tempdir()?;
    // PostgreSQL, which does not run as root, must be able to enter it.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711))?;
    let scene = Scene { program: &plan.program, folder: folder.path(), seed: plan.seed, slowness: plan.slowness };
    let (no_disk, no_route) = (disk::is_missing(), route::is_missing());
    let mut run = Run { on_step: &on_step, verdict: Verdict::default() };
    run.verdict.left_out.extend(no_disk.map(|why| format!("a full disk and power cuts: {why}")));
    run.verdict.left_out.extend(no_route.map(|why| format!("dropped packets: {why}")));
    let no_cluster = cluster::is_missing();
    run.verdict.left_out.extend(no_cluster.map(|why| format!("faults of a Citus cluster: {why}")));
    let (has_disk, has_route) = (no_disk.is_none(), no_route.is_none());

    run.control("PostgreSQL killed, synchronous_commit off", || scene.control_kill())?;
    if has_disk && plan.power_cuts > 0 {
        run.control("power cut, fsync off", || scene.control_power())?;
    }
    if plan.drifts > 0 {
        run.control("durability turned off for a role that relies on the default", || scene.control_drift())?;
    }
    let ground = Ground::prepare(folder.path(), Durability::Full)?;
    let drops = if has_route { plan.packet_drops } else { 0 };
    run.step("service killed", plan.service_kills, |times| scene.kill_services(&ground, times))?;
    run.step("PostgreSQL killed", plan.database_kills, |times| scene.kill_database(&ground, times))?;
    run.step("connection to PostgreSQL cut", plan.database_cut_patients, |count| scene.cut_database(&ground, count))?;
    run.step("packets to PostgreSQL dropped", drops, |times| scene.drop_packets(&ground, times))?;
    run.step("answer cut", plan.answer_cut_patients, |count| scene.cut_answers(&ground, count))?;
    run.step("64 clients, one Idempotency-Key", plan.races, |times| scene.race(&ground, times))?;
    run.step("key revoked in use", plan.revocations, |times| scene.revoke(&ground, times))?;
    run.step("PostgreSQL stopped", plan.database_stops, |times| scene.stop_database(&ground, times))?;
    run.step("one backend stopped", plan.backend_stops, |times| scene.stop_backend(&ground, times))?;
    run.step("row held", plan.held_rows, |times| scene.hold_rows(&ground, times))?;
    for kind in FloodKind::ALL {
        run.step(kind.title(), plan.flood.as_secs(), |_| scene.flood(&ground, kind, plan.flood))?;
    }
    drop(ground);
    run.step("standby promoted", plan.promotions, |times| scene.promote_standby(times))?;
    run.step("durability turned off, PostgreSQL killed", plan.drifts, |times| scene.drift(times))?;
    if has_disk {
        run.step("disk full", plan.disk_fills, |times| scene.fill_disk(times))?;
        run.step("power cut", plan.power_cuts, |times| scene.cut_power(times))?;
    }
    let cluster_faults = if no_cluster.is_none() { plan.cluster_faults } else { 0 };
    run.step("worker, shard or service of a cluster", cluster_faults, |times| scene.strike_cluster(times))?;
    run.step("everything at once", plan.mixed.as_secs(), |_| scene.mix(plan.mixed, has_disk, has_route))?;
    Ok(run.verdict)
}

/// A plan being carried out.
struct Run<'a> {
    on_step: &'a dyn Fn(&str),
    verdict: Verdict,
}

impl Run<'_> {
    /// A control must lose something, or the run would not notice losses.
    fn control(&mut self, fault: &'static str, act: impl FnOnce() -> anyhow::Result<Findings>) -> anyhow::Result<()> {
        self.note(fault, true, || Ok((1, act()?)))
    }

    fn step(
        &mut self,
        fault: &'static str,
        count: u64,
        act: impl FnOnce(u64) -> anyhow::Result<(u64, Findings)>,
    ) -> anyhow::Result<()> {
        if count == 0 {
            return Ok(());
        }
        self.note(fault, false, || act(count))
    }

    fn note(
        &mut self,
        fault: &'static str,
        is_control: bool,
        act: impl FnOnce() -> anyhow::Result<(u64, Findings)>,
    ) -> anyhow::Result<()> {
        (self.on_step)(fault);
        let started = Instant::now();
        let (times, found) = act().with_context(|| fault)?;
        self.verdict.lines.push(Line { fault, is_control, times, found, time: started.elapsed() });
        Ok(())
    }
}
