//! The table of results, beside the targets.

use std::fmt::Write;
use std::time::Duration;

use crate::open_loop::Tail;
use crate::{load, pgbench};

/// Everything that was measured, in medians.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) measured: Vec<Measured>,
    pub(crate) open_loop: Tail,
    /// The p99 of pgbench's inserts in an open loop at half its own peak rate, in milliseconds.
    pub(crate) pgbench_tail: f64,
    /// In milliseconds.
    pub(crate) commit_latency: f64,
    /// Processor time of the service in microseconds, for a new TLS session and for a resumed one.
    pub(crate) tls_connections: (f64, f64),
    pub(crate) peak_memory: u64,
    pub(crate) start: Duration,
    /// Number of rows of the large table, and the rate there divided by that on an empty table.
    pub(crate) large_table: Option<(u64, f64)>,
}

/// The results with one number of connections.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) connections: usize,
    pub(crate) pgbench: pgbench::Run,
    pub(crate) https: load::Run,
    pub(crate) plain: load::Run,
}

/// A figure with its targets.
struct Target {
    what: String,
    value: f64,
    unit: &'static str,
    must: f64,
    aim: f64,
    is_ceiling: bool,
}

impl Target {
    fn floor(what: &str, value: f64, must: f64, aim: f64) -> Self {
        Self { what: what.to_owned(), value, unit: "", must, aim, is_ceiling: false }
    }

    fn ceiling(what: &str, value: f64, unit: &'static str, must: f64, aim: f64) -> Self {
        Self { what: what.to_owned(), value, unit, must, aim, is_ceiling: true }
    }
}

impl Report {
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::from(
            "Durable creates a second (medians; 5 % of the requests are invalid and not counted), latency of answers in ms, \
             processor time for each patient in µs\n\n\
             | connections | pgbench | HTTPS | ÷ pgbench | plain | ÷ pgbench | plain p50 | plain p99 | service µs, HTTPS | service µs, plain | PostgreSQL µs, plain |\n\
             |---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for Measured { connections, pgbench, https, plain } in &self.measured {
            let _ = writeln!(
                text,
                "| {connections} | {:.0} | {:.0} | {:.2} | {:.0} | {:.2} | {:.2} | {:.2} | {:.1} | {:.1} | {:.1} |",
                pgbench.creates,
                https.creates,
                https.creates / pgbench.creates,
                plain.creates,
                plain.creates / pgbench.creates,
                plain.p50,
                plain.p99,
                https.service_cpu,
                plain.service_cpu,
                plain.postgres_cpu,
            );
        }
        let Tail { rate, p50, p99, p999 } = self.open_loop;
        let _ = writeln!(
            text,
            "\nOpen loop, plain HTTP, {rate:.0} requests a second: p50 {p50:.2} ms, p99 {p99:.2} ms, p99.9 {p999:.2} ms. \
             pgbench at half of its own peak: p99 {:.2} ms. A single commit of an idle PostgreSQL: {:.2} ms.\n\nA connection over TLS with one small answer costs the service \
             {:.0} µs with a new session, {:.0} µs with one that continues.\n\n| What | Measured | Must | Aim | |\n|---|---:|---:|---:|---|",
            self.pgbench_tail, self.commit_latency, self.tls_connections.0, self.tls_connections.1,
        );
        for Target { what, value, unit, must, aim, is_ceiling } in self.targets() {
            let reaches = |target: f64| if is_ceiling { value <= target } else { value >= target };
            let verdict = if reaches(aim) {
                "aim reached"
            } else if reaches(must) {
                "reached"
            } else {
                "missed"
            };
            let _ = writeln!(text, "| {what} | {value:.2}{unit} | {must}{unit} | {aim}{unit} | {verdict} |");
        }
        text
    }

    fn targets(&self) -> Vec<Target> {
        let (floor, ceiling) = (Target::floor, Target::ceiling);
        let at = |connections| self.measured.iter().find(|one| one.connections == connections);
        let best = self.measured.iter().map(|one| one.pgbench.creates).fold(0.0, f64::max);
        let mut targets = Vec::new();
        if let Some(one) = at(128) {
            targets.push(floor(
                "HTTPS at 128 connections ÷ pgbench at 128",
                one.https.creates / one.pgbench.creates,
                2.0,
                3.0,
            ));
            targets.push(floor(
                "plain HTTP at 128 ÷ pgbench at 128",
                one.plain.creates / one.pgbench.creates,
                2.5,
                3.5,
            ));
        }
        if let Some(one) = at(512) {
            targets.push(floor("plain HTTP at 512 ÷ pgbench at its best", one.plain.creates / best, 2.5, 3.5));
        }
        if let Some(one) = at(1) {
            targets.push(ceiling(
                "plain HTTP, 1 connection: median latency ÷ pgbench's",
                one.plain.p50 / one.pgbench.latency,
                "",
                2.0,
                1.5,
            ));
        }
        let tail = self.open_loop.p99 / self.commit_latency;
        targets.push(ceiling("p99 at half the peak rate ÷ median commit", tail, "", 8.0, 4.0));
        if let Some((rows, ratio)) = self.large_table {
            targets.push(floor(&format!("rate at {rows} rows ÷ rate on an empty table"), ratio, 0.9, 0.97));
        }
        targets.extend(self.costs());
        targets
    }

    /// Time and memory that the service may take.
    fn costs(&self) -> Vec<Target> {
        let (ceiling, mut targets) = (Target::ceiling, Vec::new());
        if let Some(one) = self.measured.iter().max_by(|one, other| one.plain.creates.total_cmp(&other.plain.creates)) {
            targets.push(ceiling(
                "service's processor time for a patient, plain, at its peak rate",
                one.plain.service_cpu,
                " µs",
                16.0,
                10.0,
            ));
        }
        let mebibytes = self.peak_memory as f64 / 1024.0 / 1024.0;
        targets.push(ceiling("peak memory of the service", mebibytes, " MiB", 64.0, 40.0));
        let what = "from start to ready, migrated external database";
        targets.push(ceiling(what, self.start.as_secs_f64() * 1e3, " ms", 200.0, 60.0));
        targets
    }
}
