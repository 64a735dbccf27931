//! `just bench --cluster`: the same load on one PostgreSQL and on a Citus cluster, in turns. With all nodes on one
//! machine no gain can show, only what each patient costs.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use intake_infra::Prepared;
use intake_test_support::TestDatabase;

use crate::load::{Listener, Run};
use crate::median::median;
use crate::stage::{PostgresServer, Stage};

/// Number of organisations that send over how many connections: batches of many, of a few, and of one.
const LOADS: [(usize, usize); 3] = [(1_000, 512), (10, 128), (1, 128)];

pub(crate) fn measure(
    program: &Path,
    settings: &[String],
    rounds: usize,
    time: Duration,
    table: &mut String,
) -> anyhow::Result<()> {
    let _ = writeln!(
        table,
        "| organisations, connections | one PostgreSQL | PostgreSQL µs | p99 ms | cluster | PostgreSQL µs | p99 ms | cluster ÷ one |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|"
    );
    let postgres = PostgresServer::prepare()?;
    for (organisations, connections) in LOADS {
        let name = |kind: &str| format!("{kind}_{organisations}");
        let mut one = Stage::build_for(organisations, &postgres, &name("one"), program, settings)?;
        let database = TestDatabase::new();
        let urls = Prepared { owner: database.owner.clone(), service: database.service.clone() };
        let servers = database.citus().processes();
        let mut cluster =
            Stage::build_on(urls, servers, organisations, &postgres, &name("cluster"), program, settings)?;
        let (mut of_one, mut of_cluster) = (Vec::new(), Vec::new());
        for round in 1..=rounds {
            eprintln!("round {round}: {organisations} organisations, {connections} connections");
            of_one.push(one.load(Listener::Plain, connections, time)?);
            of_cluster.push(cluster.load(Listener::Plain, connections, time)?);
        }
        let middle = |runs: &[Run], what: fn(&Run) -> f64| median(runs.iter().map(what).collect());
        let rates = [&of_one, &of_cluster].map(|runs| middle(runs, |run| run.creates));
        let costs = [&of_one, &of_cluster].map(|runs| middle(runs, |run| run.postgres_cpu));
        let tails = [&of_one, &of_cluster].map(|runs| middle(runs, |run| run.p99));
        let _ = writeln!(
            table,
            "| {organisations}, {connections} | {:.0} | {:.1} | {:.0} | {:.0} | {:.1} | {:.0} | {:.2} |",
            rates[0],
            costs[0],
            tails[0],
            rates[1],
            costs[1],
            tails[1],
            rates[1] / rates[0]
        );
    }
    Ok(())
}
