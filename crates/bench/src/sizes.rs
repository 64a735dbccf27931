//! `just bench --sizes`: the table of docs/operations/sizes.md, and what differs from it: the disk, the log (WAL) and
//! the archive that patients take, for three numbers of organisations. Bytes depend little on the machine.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::ensure;

use crate::stage::{PostgresServer, Stage};

/// Organisations, and patients a day. Vendors send for ten hours.
const SIZES: [(usize, f64); 3] = [(1, 50.0), (100, 5_000.0), (5_000, 250_000.0)];
const MINUTES_A_DAY: f64 = 600.0;
const DAYS_A_YEAR: f64 = 250.0;
/// PostgreSQL's `archive_timeout` of docs/operations/restoring.md: each file of the log holds a minute at most.
const MINUTE: Duration = Duration::from_secs(60);
/// Enough that the first pages count for little.
const PATIENTS: u64 = 1_000_000;
/// A figure may differ from the page by this part of it.
const TOLERANCE: f64 = 0.25;
const KIB: f64 = 1024.0;
const MIB: f64 = KIB * KIB;

/// Figures for one number of organisations.
struct Size {
    organisations: usize,
    patients_a_day: f64,
    disk: f64,
    log: f64,
    compressed: f64,
}

/// Measures everything, and returns a table.
pub(crate) fn measure(postgres: &PostgresServer, program: &Path, settings: &[String]) -> anyhow::Result<String> {
    let sizes = SIZES.map(|(organisations, patients_a_day)| {
        eprintln!("{organisations} organisations");
        let name = format!("sizes_{organisations}");
        let mut stage = Stage::build_for(organisations, postgres, &name, program, settings)?;
        size(&mut stage, organisations, patients_a_day)
    });
    Ok(table(&sizes.into_iter().collect::<anyhow::Result<Vec<_>>>()?))
}

fn size(stage: &mut Stage<'_>, organisations: usize, patients_a_day: f64) -> anyhow::Result<Size> {
    stage.fill_table(PATIENTS)?;
    let disk = stage.size_of_patients()? / PATIENTS as f64;
    // Whether PostgreSQL tidies up in the minute that counts is chance: it made 23 KiB of one patient 243.
    stage.set("autovacuum", "off")?;
    // The first minute after a checkpoint writes most, because it writes whole pages.
    stage.settle()?;
    let file = stage.next_file()?;
    let log = stage.log_of_all((patients_a_day / MINUTES_A_DAY).max(1.0) / MINUTE.as_secs_f64(), MINUTE)?;
    let compressed = stage.archived(&file)?;
    Ok(Size { organisations, patients_a_day, disk, log, compressed })
}

fn table(sizes: &[Size]) -> String {
    let mut table = String::from("| Organisations |");
    for Size { organisations, .. } in sizes {
        let _ = write!(table, " {organisations} |");
    }
    let _ = write!(table, "\n|---|{}\n", "---:|".repeat(sizes.len()));
    let mut row = |what: &str, of: fn(&Size) -> f64| {
        let cells = sizes.iter().map(|size| format!(" {} |", shown(of(size)))).collect::<String>();
        let _ = writeln!(table, "| {what} |{cells}");
    };
    row("patients a day", |size| size.patients_a_day);
    row("disk of a patient, bytes", |size| size.disk);
    row("disk a year, GiB", |size| size.disk * size.patients_a_day * DAYS_A_YEAR / MIB / KIB);
    row("log (WAL) of a patient, KiB", |size| size.log / KIB);
    row("archive a day, GiB", |size| files_a_day(size) * 16.0 / KIB);
    row("archive a day, compressed, MiB", |size| files_a_day(size) * size.compressed / MIB);
    table
}

/// A file of 16 MiB is archived for each minute in which a patient came.
fn files_a_day(size: &Size) -> f64 {
    size.patients_a_day.min(MINUTES_A_DAY)
}

fn shown(figure: f64) -> String {
    if figure < 0.1 {
        format!("{figure:.3}")
    } else if figure < 10.0 {
        format!("{figure:.1}")
    } else {
        format!("{figure:.0}")
    }
}

/// Fails if a row of the table is not on the page, or if one of its figures differs by more than the tolerance.
pub(crate) fn compare(table: &str, page: &str) -> anyhow::Result<()> {
    let differs = |row: &&str| {
        let what = row.split('|').nth(1);
        let on_page = page.lines().find(|line| line.starts_with('|') && line.split('|').nth(1) == what);
        !on_page.is_some_and(|line| is_near(row, line))
    };
    let rows: Vec<_> = table.lines().filter(differs).collect();
    ensure!(rows.is_empty(), "docs/operations/sizes.md has other figures for:\n{}", rows.join("\n"));
    Ok(())
}

fn is_near(row: &str, line: &str) -> bool {
    let figures = |row: &str| row.split('|').skip(2).map(|cell| cell.trim().replace(',', "")).collect::<Vec<_>>();
    let (measured, stated) = (figures(row), figures(line));
    let pairs = measured.iter().zip(&stated).map(|(one, other)| (one, other, one.parse::<f64>(), other.parse::<f64>()));
    measured.len() == stated.len()
        && pairs.into_iter().all(|(one, other, measured, stated)| match (measured, stated) {
            (Ok(measured), Ok(stated)) => (measured - stated).abs() <= TOLERANCE * stated,
            _ => one == other,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_differ_from_the_page_are_named() {
        let page = "Text.\n\n| Organisations | 1 | 5,000 |\n|---|---:|---:|\n| disk | 480 | 1,000 |\n";
        let with = |row: &str| compare(&format!("| Organisations | 1 | 5000 |\n|---|---:|---:|\n{row}\n"), page);
        assert!(with("| disk | 400 | 1240 |").is_ok());
        for row in ["| disk | 300 | 1000 |", "| disk | 480 | 1300 |", "| disk | 480 |", "| log | 480 | 1000 |"] {
            assert!(with(row).unwrap_err().to_string().ends_with(row), "{row}");
        }
    }
}
