//! `just bench --wal`: what PostgreSQL writes to its log for a patient, just after a checkpoint and later, with each
//! `wal_compression`, and what a vacuum of the table takes. At a fixed rate, so that bytes depend little on the
//! machine.

use std::fmt::Write as _;
use std::time::Duration;

use crate::stage::Stage;

const COMPRESSIONS: [&str; 3] = ["off", "lz4", "pglz"];
/// Low enough for a small machine with other work.
const RATE: f64 = 4_000.0;
const CONNECTIONS: usize = 64;

/// Adds what was found to the tables.
pub(crate) fn measure(
    stage: &mut Stage<'_>,
    rounds: usize,
    rows: u64,
    time: Duration,
    table: &mut String,
) -> anyhow::Result<()> {
    let _ = writeln!(
        table,
        "| wal_compression | bytes a patient just after a checkpoint | of these page images | PostgreSQL µs | bytes a patient later | of these page images | PostgreSQL µs |\n\
         |---|---:|---:|---:|---:|---:|---:|"
    );
    // No checkpoint but those that are asked for.
    stage.set("max_wal_size", "'16GB'")?;
    stage.set("checkpoint_timeout", "'1h'")?;
    for round in 1..=rounds {
        for compression in COMPRESSIONS {
            eprintln!("round {round}, wal_compression = {compression}");
            stage.set("wal_compression", compression)?;
            // The pages of the index are equally full each time: those of organisations of one size are split together.
            stage.refill(rows)?;
            let [after, later] = [(); 2].map(|()| stage.log_of_load(RATE, CONNECTIONS, time));
            let (after, later) = (after?, later?);
            let _ = writeln!(
                table,
                "| {compression} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} |",
                after.bytes, after.in_images, after.postgres_cpu, later.bytes, later.in_images, later.postgres_cpu
            );
        }
    }
    let _ = writeln!(table, "\n| on {rows} patients | seconds | bytes a patient |\n|---|---:|---:|");
    for statements in [&["VACUUM patients", "VACUUM FREEZE patients"][..], &["VACUUM FREEZE patients"]] {
        eprintln!("{}", statements.join(", "));
        stage.refill(rows)?;
        for (number, statement) in statements.iter().enumerate() {
            let chore = stage.chore(statement, rows)?;
            let when = if number == 0 { "new rows" } else { "the same rows, afterwards" };
            let _ = writeln!(table, "| {statement}, {when} | {:.2} | {:.1} |", chore.time.as_secs_f64(), chore.bytes);
        }
    }
    Ok(())
}
