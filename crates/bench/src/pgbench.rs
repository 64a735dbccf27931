//! What PostgreSQL does without a service in front: pgbench, single-row prepared inserts of the same columns, each its own
//! transaction.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;

use crate::report;

/// The columns and sizes of an ordinary patient. The id is random, since SQL has no version 7 yet.
const SCRIPT: &str = "\\set organisation random(1, :organisations)
\\set year random(1930, 2020)
INSERT INTO patients (organisation_id, id, first_name, last_name, phone_number, date_of_birth, email, address_line1, \
                      address_line2, suburb, state, postcode, country, created_at, updated_at) VALUES \
                      (('00000000-0000-4000-8000-' || lpad(:organisation::text, 12, '0'))::uuid, gen_random_uuid(), 'Ada', \
                      'Lovelace', '+61412345678', make_date(:year, 12, 10), 'ada@example.com', '12 Analytical Street', NULL, \
                      'Carlton', 'VIC', '3053', 'AU', now(), now());
";

/// One run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    pub(crate) creates: f64,
    /// In milliseconds.
    pub(crate) latency: f64,
}

/// Inserts as fast as that many clients can.
pub(crate) fn run(
    program: &Path,
    connection: &str,
    folder: &Path,
    clients: usize,
    time: Duration,
    organisations: usize,
) -> anyhow::Result<Run> {
    let script = folder.join("insert.sql");
    std::fs::write(&script, SCRIPT)?;
    let output = Command::new(program)
        .args(["--no-vacuum", "--protocol=prepared"])
        .arg(format!("--client={clients}"))
        .arg(format!("--jobs={}", clients.min(2)))
        .arg(format!("--time={}", time.as_secs()))
        .arg(format!("--define=organisations={organisations}"))
        .arg("--file")
        .arg(&script)
        .arg(connection)
        .output()
        .context("pgbench does not run")?;
    let text = String::from_utf8_lossy(&output.stdout);
    anyhow::ensure!(output.status.success(), "pgbench: {}", String::from_utf8_lossy(&output.stderr));
    let number = |before: &str| -> anyhow::Result<f64> {
        let rest = text.split_once(before).with_context(|| format!("pgbench says nothing of {before}: {text}"))?.1;
        Ok(rest.split_whitespace().next().unwrap_or_default().parse()?)
    };
    Ok(Run { creates: number("tps = ")?, latency: number("latency average = ")? })
}

pub(crate) fn median(runs: &[Run]) -> Run {
    let middle = |of: fn(&Run) -> f64| report::median(runs.iter().map(of).collect());
    Run { creates: middle(|run| run.creates), latency: middle(|run| run.latency) }
}
