//! A register on a Citus cluster: nodes die or hang, the coordinator too, shards move and services are killed, while
//! the clients of two organisations go on.

use intake_infra::{Durability, Prepared};
use intake_test_support::TestDatabase;

use crate::audit::Findings;
use crate::hangs::RECOVERY;
use crate::postgres_server::PostgresServer;
use crate::run::{Fault, Refusals, Run};
use crate::test_bed::{INSTANCES, TestBed};

const NAME: &str = "cluster";
/// Time for which a node is away, in milliseconds: less and more than requests wait.
const AWAY: (u64, u64) = (100, 4_000);

/// Returns why it cannot be tried.
pub(crate) fn is_missing() -> Option<&'static str> {
    let is_named = std::env::var_os("INTAKE_TEST_CITUS_URL").is_some_and(|url| !url.is_empty());
    (!is_named).then_some("INTAKE_TEST_CITUS_URL names none")
}

impl Run<'_> {
    /// Strikes the cluster that `INTAKE_TEST_CITUS_URL` names, all of it on this machine.
    pub(crate) fn strike_cluster(&self, times: u64) -> anyhow::Result<(u64, Findings)> {
        let database = TestDatabase::new();
        database.citus().use_alone();
        // Of which the proxies of every bed are made; nobody connects to it.
        let server = PostgresServer::prepare(&self.folder.join("beside_the_cluster"), Durability::None)?;
        let urls = Prepared { owner: database.owner.clone(), service: database.service.clone() };
        let bed = TestBed::open_at(&server, &self.impatient_plan(NAME), urls)?;
        self.run_fault_in(&bed, Refusals::Expected, |fault| {
            let mut struck = 0;
            for _ in 0..times {
                fault.rest();
                struck += u64::from(fault.strike_cluster(&database)?);
            }
            Ok(struck)
        })
    }
}

impl Fault<'_> {
    /// Returns whether a fault has struck.
    fn strike_cluster(&mut self, database: &TestDatabase) -> anyhow::Result<bool> {
        let citus = database.citus();
        let node = usize::try_from(self.random.below(citus.nodes() as u64))?;
        match self.random.below(4) {
            strike @ 0..2 => {
                let struck = if strike == 0 { citus.stop_node(node) } else { citus.freeze_node(node) };
                std::thread::sleep(self.random.milliseconds(AWAY.0, AWAY.1));
                drop(struck);
            }
            2 => {
                let choice = usize::try_from(self.random.below(self.bed.clinics.len() as u64))?;
                let Some((clinic, _)) = self.bed.clinics.get(choice) else { return Ok(false) };
                let from = citus.node_of(database.name(), clinic.organisation);
                let to = (1..citus.nodes()).find(|node| *node != from);
                // Citus refuses it while something is left of a node's death.
                let is_moved =
                    to.map(|to| citus.move_shard(database.name(), clinic.organisation, to, "block_writes").is_ok());
                return Ok(is_moved == Some(true));
            }
            _ => self.bed.kill_service(usize::try_from(self.random.below(INSTANCES as u64))?)?,
        }
        self.must_serve(std::time::Instant::now(), RECOVERY, "a fault of the cluster");
        Ok(true)
    }
}
