//! What PostgreSQL writes to its log (WAL) meanwhile, counted by PostgreSQL itself (`pg_walinspect`).

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{Double, Text};

use super::{SETTLE, Stage};

/// The script of the package, from the root of the clone.
const ARCHIVE: &str = "crates/server/packaging/archive";

/// Bytes that were written while patients were stored.
pub(crate) struct Written {
    /// Bytes for each patient.
    pub(crate) bytes: f64,
    /// The part of these that is images of whole pages.
    pub(crate) in_images: f64,
    /// Microseconds of PostgreSQL's processor time for each patient.
    pub(crate) postgres_cpu: f64,
}

/// Cost of a statement that looks after the table.
pub(crate) struct Chore {
    pub(crate) time: Duration,
    /// Bytes in the log for each patient in the table.
    pub(crate) bytes: f64,
}

#[derive(QueryableByName)]
struct Position {
    #[diesel(sql_type = Text)]
    position: String,
}

#[derive(QueryableByName)]
struct Sums {
    #[diesel(sql_type = Double)]
    bytes: f64,
    #[diesel(sql_type = Double)]
    in_images: f64,
}

impl Stage<'_> {
    /// Changes a setting of the server.
    pub(crate) fn set(&self, name: &str, value: &str) -> anyhow::Result<()> {
        let mut connection = self.connect()?;
        connection.batch_execute(&format!("ALTER SYSTEM SET {name} = {value}"))?;
        Ok(connection.batch_execute("SELECT pg_reload_conf()")?)
    }

    /// Sends valid patients at a fixed rate, without a checkpoint before.
    pub(crate) fn log_of_load(&self, rate: f64, connections: usize, time: Duration) -> anyhow::Result<Written> {
        let (start, cpu) = (self.position()?, self.postgres_cpu()?);
        let created = self.beside(rate, connections, time)?.all_answered()?.created as f64;
        std::thread::sleep(SETTLE);
        let cpu = self.postgres_cpu()? - cpu;
        let written = self.written_since(&start)?;
        Ok(Written {
            bytes: written.bytes / created,
            in_images: written.in_images / created,
            postgres_cpu: cpu.as_secs_f64() * 1e6 / created,
        })
    }

    /// Sends valid patients at a fixed rate. Returns the bytes in the log for each patient, with all that the service
    /// stores in this time.
    pub(crate) fn log_of_all(&self, rate: f64, time: Duration) -> anyhow::Result<f64> {
        let (start, started) = (self.position()?, Instant::now());
        let created = self.beside(rate, 1, time)?.all_answered()?.created as f64;
        std::thread::sleep(time.saturating_sub(started.elapsed()));
        Ok(self.written_since(&start)?.bytes / created)
    }

    /// Empties the table and stores this many patients; a vacuum is left to the caller.
    pub(crate) fn refill(&mut self, rows: u64) -> anyhow::Result<()> {
        self.empty_table()?;
        self.insert_patients(rows)?;
        self.settle()
    }

    /// Runs a statement that looks after a table of this many patients.
    pub(crate) fn chore(&self, statement: &str, rows: u64) -> anyhow::Result<Chore> {
        let (start, started) = (self.position()?, Instant::now());
        self.connect()?.batch_execute(statement)?;
        let time = started.elapsed();
        Ok(Chore { time, bytes: self.written_since(&start)?.bytes / rows as f64 })
    }

    /// Begins a file of the log. Returns its name.
    pub(crate) fn next_file(&self) -> anyhow::Result<String> {
        self.position()?;
        let mut connection = self.connect()?;
        connection.batch_execute("SELECT pg_switch_wal()")?;
        // The end of a file is within that file, according to some versions.
        let query = diesel::sql_query("SELECT pg_walfile_name(pg_current_wal_insert_lsn() + 1) AS position");
        Ok(query.get_result::<Position>(&mut connection)?.position)
    }

    /// Archives a file of the log as the package does. Returns the bytes of the copy.
    pub(crate) fn archived(&self, file: &str) -> anyhow::Result<f64> {
        let (path, copy) = (self.postgres.data_folder().join("pg_wal").join(file), self.folder.join(file));
        let output = Command::new(ARCHIVE).args([&path, &copy]).output().context(ARCHIVE)?;
        ensure!(output.status.success(), "{ARCHIVE}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(fs::metadata(copy.with_extension("gz"))?.len() as f64)
    }

    fn position(&self) -> anyhow::Result<String> {
        let mut connection = self.connect()?;
        connection.batch_execute("CREATE EXTENSION IF NOT EXISTS pg_walinspect")?;
        let query = diesel::sql_query("SELECT pg_current_wal_insert_lsn()::text AS position");
        Ok(query.get_result::<Position>(&mut connection)?.position)
    }

    fn written_since(&self, start: &str) -> anyhow::Result<Sums> {
        let mut connection = self.connect()?;
        // What is counted must have been written out.
        connection.batch_execute("SELECT pg_switch_wal()")?;
        let query = diesel::sql_query(
            "SELECT sum(combined_size)::float8 AS bytes, sum(fpi_size)::float8 AS in_images
             FROM pg_get_wal_stats($1::pg_lsn, pg_current_wal_flush_lsn())",
        );
        Ok(query.bind::<Text, _>(start).get_result(&mut connection)?)
    }
}
