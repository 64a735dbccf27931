//! Makes a running service fail in every way while clients write down what they send and what is answered, and then
//! compares the register with that journal. Controls come first: without durability it must report losses.

mod access_history;
mod audit;
mod blocked_keys;
mod browser;
mod certificate;
mod clock;
mod clocks;
mod cluster;
mod disk;
mod drift;
mod erasures;
mod faults;
mod floods;
mod follower;
mod hangs;
mod import_files;
mod imports;
mod instance;
mod journal;
mod member_witnesses;
mod members;
mod mixed;
mod operations;
mod passwords;
mod people;
mod planted;
mod postgres_server;
mod promotion;
mod provider;
mod proxy;
mod pulse;
mod put_back;
mod races;
mod random;
mod reader;
mod restores;
mod route;
mod run;
mod tampering;
mod test_bed;
mod test_bed_plan;
mod traffic;
mod unread_log;
mod verdict;
mod witnesses;
mod workers;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use intake_infra::Durability;

pub use audit::Findings;
pub use verdict::Verdict;

use floods::FloodKind;
use postgres_server::PostgresServer;
use restores::Controls;
use run::Run;
use tampering::Tampering;
use verdict::{Line, MustSee};

/// Number of times that each fault strikes.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program `intake`.
    pub program: PathBuf,
    /// The seed of all random choices.
    pub seed: u64,
    /// Tampering with the register, which the audit must notice.
    pub tampering: bool,
    /// Number of times that services are killed.
    pub service_kills: u64,
    /// Number of times that PostgreSQL is killed.
    pub database_kills: u64,
    /// Number of patients that are acknowledged while connections to the database are cut.
    pub database_cut_patients: u64,
    /// Number of times that packets to PostgreSQL are dropped for a while.
    pub packet_drops: u64,
    /// Number of patients that are acknowledged while answers are cut.
    pub answer_cut_patients: u64,
    /// Number of times that 64 clients race with one idempotency key.
    pub races: u64,
    /// Number of keys that are revoked while they are used.
    pub revocations: u64,
    /// Number of times that the disk is filled.
    pub disk_fills: u64,
    /// Number of times that the power is cut.
    pub power_cuts: u64,
    /// Number of times that all of PostgreSQL is frozen.
    pub database_stops: u64,
    /// Number of times that the process of PostgreSQL that a writer talks to is frozen.
    pub backend_stops: u64,
    /// Number of times that a transaction holds a row that clients send.
    pub locked_rows: u64,
    /// Number of times that a service is started with a wrong clock.
    pub wrong_clocks: u64,
    /// Number of times that nobody reads the logs of the services for a while.
    pub unread_logs: u64,
    /// Number of times that a standby is promoted.
    pub promotions: u64,
    /// Number of times that the register is restored to a moment of the past.
    pub restores: u64,
    /// Number of times that durability is turned off for the service's role or database, and PostgreSQL killed.
    pub drifts: u64,
    /// Number of times that a worker of a Citus cluster dies, a shard moves, or a service of the cluster is killed.
    pub cluster_faults: u64,
    /// Time that each of the floods lasts.
    pub flood: Duration,
    /// Time for which all faults strike at once.
    pub mixed: Duration,
    /// Factor by which requests may wait, and services may take to come back, longer than promised: more than 1 where
    /// other programs keep the machine busy.
    pub slowness: u32,
}

/// Carries out a plan. `on_step` is called with the name of each step. A step whose count is 0 is left out.
pub fn run(plan: &Plan, on_step: impl Fn(&str)) -> anyhow::Result<Verdict> {
    let folder = tempfile::Builder::new().prefix("intake-torture-").tempdir()?;
    // PostgreSQL, which does not run as root, must be able to enter it.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o711))?;
    let run = Run { program: &plan.program, folder: folder.path(), seed: plan.seed, slowness: plan.slowness };
    let (no_disk, no_route) = (disk::is_missing(), route::is_missing());
    let mut recorder = Recorder { on_step: &on_step, verdict: Verdict::default() };
    recorder.verdict.left_out.extend(no_disk.map(|why| format!("a full disk and power cuts: {why}")));
    recorder.verdict.left_out.extend(no_route.map(|why| format!("dropped packets: {why}")));
    let no_cluster = cluster::is_missing();
    recorder.verdict.left_out.extend(no_cluster.map(|why| format!("faults of a Citus cluster: {why}")));
    let no_clocks = clock::is_missing();
    recorder.verdict.left_out.extend(no_clocks.map(|why| format!("wrong clocks: {why}")));
    recorder.verdict.left_out.extend(imports::is_missing(&plan.program).map(|why| format!("imports: {why}")));
    let (has_disk, has_route) = (no_disk.is_none(), no_route.is_none());

    let server = run_controls(&run, plan, has_disk, &mut recorder)?;
    let drops = if has_route { plan.packet_drops } else { 0 };
    recorder.step("service killed", plan.service_kills, |times| run.kill_services(&server, times))?;
    recorder.step("PostgreSQL killed", plan.database_kills, |times| run.kill_database(&server, times))?;
    recorder
        .step("connection to PostgreSQL cut", plan.database_cut_patients, |count| run.cut_database(&server, count))?;
    recorder.step("packets to PostgreSQL dropped", drops, |times| run.drop_packets(&server, times))?;
    recorder.step("answer cut", plan.answer_cut_patients, |count| run.cut_answers(&server, count))?;
    recorder.step("64 clients, one Idempotency-Key", plan.races, |times| run.race(&server, times))?;
    recorder.step("key revoked in use", plan.revocations, |times| run.revoke(&server, times))?;
    recorder.step("PostgreSQL stopped", plan.database_stops, |times| run.stop_database(&server, times))?;
    recorder.step("one backend stopped", plan.backend_stops, |times| run.stop_backend(&server, times))?;
    recorder.step("row locked", plan.locked_rows, |times| run.lock_rows(&server, times))?;
    for kind in FloodKind::ALL {
        recorder.step(kind.title(), plan.flood.as_secs(), |_| run.flood(&server, kind, plan.flood))?;
    }
    let wrong_clocks = if no_clocks.is_none() { plan.wrong_clocks } else { 0 };
    recorder.step("clock of a service wrong", wrong_clocks, |times| run.set_clocks_wrong(&server, times))?;
    recorder.step("log not read", plan.unread_logs, |times| run.leave_logs_unread(&server, times))?;
    drop(server);
    run_restores(&run, plan.restores, &mut recorder)?;
    recorder.step("standby promoted", plan.promotions, |times| run.promote_standby(times))?;
    recorder.step("durability turned off, PostgreSQL killed", plan.drifts, |times| run.drift(times))?;
    if has_disk {
        recorder.step("disk full", plan.disk_fills, |times| run.fill_disk(times))?;
        recorder.step("power cut", plan.power_cuts, |times| run.cut_power(times))?;
    }
    let cluster_faults = if no_cluster.is_none() { plan.cluster_faults } else { 0 };
    recorder.step("node, shard or service of a cluster", cluster_faults, |times| run.strike_cluster(times))?;
    recorder.step("everything at once", plan.mixed.as_secs(), |_| run.mix(plan.mixed, has_disk, has_route))?;
    Ok(recorder.verdict)
}

/// Causes faults that the run must notice, or it would notice no others. Returns the server of all other faults.
fn run_controls(
    run: &Run<'_>,
    plan: &Plan,
    has_disk: bool,
    recorder: &mut Recorder<'_>,
) -> anyhow::Result<PostgresServer> {
    if has_disk && plan.power_cuts > 0 {
        recorder.control("power cut, fsync off", MustSee::Lost, || run.control_power())?;
    }
    if plan.drifts > 0 {
        let fault = "durability turned off for a role that relies on the default";
        recorder.control(fault, MustSee::Lost, || run.control_drift())?;
    }
    let server = PostgresServer::prepare(run.folder, Durability::Full)?;
    if !plan.tampering {
        return Ok(server);
    }
    recorder.control("PostgreSQL killed, synchronous_commit off", MustSee::Lost, || run.control_kill())?;
    for tampering in Tampering::ALL {
        let (title, must_see) = tampering.title();
        recorder.control(title, must_see, || run.control_tampering(&server, tampering))?;
    }
    for (title, found) in run.control_members(&server)? {
        recorder.control(title, MustSee::Admitted, || Ok(found))?;
    }
    Ok(server)
}

/// Restores the register, with controls at the end of the first restore.
fn run_restores(run: &Run<'_>, times: u64, recorder: &mut Recorder<'_>) -> anyhow::Result<()> {
    let mut controls = Controls::default();
    recorder.step("register restored to a moment", times, |times| run.restore(times, &mut controls))?;
    let member = (restores::MEMBER_CONTROL, MustSee::Admitted, controls.members);
    let all = restores::CONTROLS.into_iter().map(|(title, must_see)| (title, must_see, controls.others.clone()));
    all.chain([member])
        .filter(|_| times > 0)
        .try_for_each(|(title, must_see, found)| recorder.control(title, must_see, || Ok(found)))
}

/// A plan being carried out.
struct Recorder<'a> {
    on_step: &'a dyn Fn(&str),
    verdict: Verdict,
}

impl Recorder<'_> {
    /// A control must see something, or the run would not notice it either.
    fn control(
        &mut self,
        fault: &'static str,
        must_see: MustSee,
        strike: impl FnOnce() -> anyhow::Result<Findings>,
    ) -> anyhow::Result<()> {
        self.note(fault, Some(must_see), || Ok((1, strike()?)))
    }

    fn step(
        &mut self,
        fault: &'static str,
        count: u64,
        strike: impl FnOnce(u64) -> anyhow::Result<(u64, Findings)>,
    ) -> anyhow::Result<()> {
        if count == 0 {
            return Ok(());
        }
        self.note(fault, None, || strike(count))
    }

    fn note(
        &mut self,
        fault: &'static str,
        must_see: Option<MustSee>,
        strike: impl FnOnce() -> anyhow::Result<(u64, Findings)>,
    ) -> anyhow::Result<()> {
        (self.on_step)(fault);
        let started = Instant::now();
        let (times, found) = strike().with_context(|| fault)?;
        self.verdict.lines.push(Line { fault, must_see, times, found, time: started.elapsed() });
        Ok(())
    }
}
