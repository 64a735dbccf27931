//! `just bench --neighbours`, fairness: a quiet organisation sends a few patients while another one keeps 1,500
//! connections busy and each commit takes 100 ms.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::anyhow;

use crate::load;
use crate::median::median;
use crate::open_loop;
use crate::requests;
use crate::stage::Stage;

/// Requests a second of the quiet organisation, and its connections: enough that no request waits for a free one.
const RATE: f64 = 50.0;
const CONNECTIONS: usize = 64;
/// The connections of the other organisation, and its keys: enough that none exceeds the usual rate limit.
const BUSY_CONNECTIONS: usize = 1_500;
const BUSY_KEYS: usize = 30;
/// Time for which the other organisation sends before and after the measurement.
const MARGIN: Duration = Duration::from_secs(2);
/// The largest growth of the quiet organisation's p99.
const RATIO_MAX: f64 = 2.0;

/// Adds its row to the table.
pub(crate) fn measure(stage: &mut Stage<'_>, rounds: usize, time: Duration, table: &mut String) -> anyhow::Result<()> {
    stage.delay_commits()?;
    let (mut calm, mut beside, mut refused) = (Vec::new(), Vec::new(), 0);
    for round in 1..=rounds {
        eprintln!("round {round}, a quiet organisation beside a busy one");
        calm.push(quiet(stage, time)?.tail.p99);
        let busy = stage.clinic();
        let keys: Vec<_> = (0..BUSY_KEYS).map(|_| busy.key().1).collect();
        let (url, file) =
            (format!("http://{}/api/v1/patients", stage.plain()?), stage.requests_file("busy.tsv", &keys)?);
        let outcome = std::thread::scope(|scope| {
            let busy = scope.spawn(|| load::run(&url, &file, BUSY_CONNECTIONS, time + 2 * MARGIN));
            std::thread::sleep(MARGIN);
            let outcome = quiet(stage, time);
            busy.join().map_err(|_| anyhow!("the load generator panicked"))??;
            outcome
        })?;
        beside.push(outcome.tail.p99);
        refused += outcome.refused;
    }
    let (calm, beside) = (median(calm), median(beside));
    let is_served = if refused == 0 { "all 201".to_owned() } else { format!("{refused} not 201") };
    let _ = writeln!(
        table,
        "| p99 of an organisation at {RATE:.0} creates a second beside {BUSY_CONNECTIONS} connections of another, commits of \
         100 ms ÷ calm | {beside:.0} ms ÷ {calm:.0} ms = {:.2}; {is_served} | {RATIO_MAX:.1}; all 201 |",
        beside / calm,
    );
    Ok(())
}

fn quiet(stage: &Stage<'_>, time: Duration) -> anyhow::Result<open_loop::Outcome> {
    let requests = requests::valid(stage.first_key(), &[("X-Forwarded-Proto", "https")]);
    open_loop::run(stage.plain()?, &requests, RATE, CONNECTIONS, time)
}
