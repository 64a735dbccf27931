//! `just bench --beside PROGRAM`: this program and another build of it take turns on databases of one PostgreSQL, so
//! that the ratio does not depend on how fast the machine is at the moment.

use std::fmt::Write as _;
use std::time::Duration;

use crate::load::{self, Listener, Run};
use crate::stage::Stage;

/// The numbers of connections, unless others are asked for.
pub(crate) const CONNECTIONS: [usize; 2] = [128, 512];

/// Returns a table.
pub(crate) fn measure(
    this: &mut Stage<'_>,
    other: &mut Stage<'_>,
    connections: &[usize],
    rounds: usize,
    time: Duration,
) -> anyhow::Result<String> {
    let mut table = String::from(
        "| connections | creates a second ÷ the other's | processor time for a patient, the other's | ratio in each round |\n\
         |---:|---:|---:|---|\n",
    );
    for &count in connections {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 1..=rounds {
            eprintln!("{count} connections, round {round}");
            // Neither is always the first.
            if round % 2 == 1 {
                ours.push(this.load(Listener::Plain, count, time)?);
                theirs.push(other.load(Listener::Plain, count, time)?);
            } else {
                theirs.push(other.load(Listener::Plain, count, time)?);
                ours.push(this.load(Listener::Plain, count, time)?);
            }
        }
        let ratio = |(ours, theirs): (&Run, &Run)| format!("{:.2}", ours.creates / theirs.creates);
        let ratios: Vec<String> = ours.iter().zip(&theirs).map(ratio).collect();
        let (ours, theirs) = (load::median(&ours), load::median(&theirs));
        let _ = writeln!(
            table,
            "| {count} | {:.0} ÷ {:.0} = {:.2} | {:.1}, {:.1} µs | {} |",
            ours.creates,
            theirs.creates,
            ours.creates / theirs.creates,
            ours.service_cpu,
            theirs.service_cpu,
            ratios.join(", "),
        );
    }
    Ok(table)
}
