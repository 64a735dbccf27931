//! What PostgreSQL achieves without the service: pgbench, with prepared inserts of one row into the same columns, each
//! a transaction of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use intake_domain::Field;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    pub(crate) creates: f64,
    /// In milliseconds.
    pub(crate) latency: f64,
}

/// Arguments of pgbench.
pub(crate) struct Pgbench<'a> {
    pub(crate) program: PathBuf,
    pub(crate) connection: &'a str,
    /// The folder for its script and its log.
    pub(crate) folder: &'a Path,
    pub(crate) organisations: usize,
}

impl Pgbench<'_> {
    /// Inserts as fast as this many clients can.
    pub(crate) fn run(&self, clients: usize, time: Duration) -> anyhow::Result<Run> {
        let text = self.output(clients, time, &[])?;
        let number = |before: &str| -> anyhow::Result<f64> {
            let rest = text.split_once(before).with_context(|| format!("pgbench says nothing of {before}: {text}"))?.1;
            Ok(rest.split_whitespace().next().unwrap_or_default().parse()?)
        };
        Ok(Run { creates: number("tps = ")?, latency: number("latency average = ")? })
    }

    /// Inserts at fixed times, at this rate a second. Returns the p99 in milliseconds, counted from the time at which
    /// an insert should have begun.
    pub(crate) fn tail(&self, rate: f64, clients: usize, time: Duration) -> anyhow::Result<f64> {
        let prefix = self.folder.join("latencies");
        let prefix = format!("--log-prefix={}", prefix.display());
        self.output(clients, time, &[&format!("--rate={rate:.0}"), "--log", &prefix])?;
        let mut latencies = Vec::new();
        for entry in std::fs::read_dir(self.folder)? {
            let path = entry?.path();
            if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("latencies.")) {
                continue;
            }
            let log = std::fs::read_to_string(&path)?;
            latencies.extend(log.lines().filter_map(|line| line.split(' ').nth(2)?.parse::<u32>().ok()));
            std::fs::remove_file(path)?;
        }
        latencies.sort_unstable();
        let p99 = latencies.get(latencies.len() * 99 / 100).context("pgbench logged nothing")?;
        Ok(f64::from(*p99) / 1e3)
    }

    fn output(&self, clients: usize, time: Duration, more: &[&str]) -> anyhow::Result<String> {
        let script = self.folder.join("insert.sql");
        std::fs::write(&script, create_script())?;
        let output = Command::new(&self.program)
            .args(["--no-vacuum", "--protocol=prepared"])
            .arg(format!("--client={clients}"))
            .arg(format!("--jobs={}", clients.min(2)))
            .arg(format!("--time={}", time.as_secs()))
            .arg(format!("--define=organisations={}", self.organisations))
            .args(more)
            .arg("--file")
            .arg(&script)
            .arg(self.connection)
            .output()
            .context("pgbench does not run")?;
        anyhow::ensure!(output.status.success(), "pgbench: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

pub(crate) fn median(runs: &[Run]) -> Run {
    let middle = |of: fn(&Run) -> f64| crate::median::median(runs.iter().map(of).collect());
    Run { creates: middle(|run| run.creates), latency: middle(|run| run.latency) }
}

/// The columns and sizes of an ordinary patient. The id is random, since SQL has no version 7 yet.
fn create_script() -> String {
    let columns = Field::ALL.iter().copied().map(Field::column).collect::<Vec<_>>().join(", ");
    let value = |field: Field| match field {
        Field::DateOfBirth => "make_date(:year, 12, 10)".to_owned(),
        Field::AddressLine2 => "NULL".to_owned(),
        other => format!("'{}'", other.definition().example),
    };
    let values = Field::ALL.iter().copied().map(value).collect::<Vec<_>>().join(", ");
    // A statement of pgbench is one line.
    format!(
        "\\set organisation random(1, :organisations)\n\\set year random(1930, 2020)\n\
         INSERT INTO patients (organisation_id, id, {columns}, created_at, updated_at) VALUES \
         (('00000000-0000-4000-8000-' || lpad(:organisation::text, 12, '0'))::uuid, gen_random_uuid(), {values}, now(), now());\n"
    )
}
