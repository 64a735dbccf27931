//! What is counted of the running service.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use intake_domain::ApiKey;
use intake_test_support::WithCount;

use super::Stage;
use crate::load::{self, Listener};
use crate::requests;

/// Time until a slow service has stored what it was sent.
const SLOWLY: Duration = Duration::from_secs(3);

impl Stage<'_> {
    /// The process of the service.
    pub(crate) fn process(&self) -> u32 {
        self.service.process()
    }

    /// Returns how much memory the service holds, in bytes.
    pub(crate) fn resident_memory(&self) -> anyhow::Result<u64> {
        Ok(u64::try_from(self.service.memory())?)
    }

    /// Returns the bytes of the patients' table and its indexes.
    pub(crate) fn size_of_patients(&self) -> anyhow::Result<f64> {
        let size = diesel::sql_query("SELECT pg_total_relation_size('patients') AS count");
        Ok(size.get_result::<WithCount>(&mut self.connect()?)?.count as f64)
    }

    /// Sends as much as this many connections can to a service that a tool makes slow. Returns how many patients were
    /// stored.
    pub(crate) fn load_slowly(&self, connections: usize, time: Duration) -> anyhow::Result<u64> {
        let rows = self.rows()?;
        load::run(&format!("http://{}/api/v1/patients", self.plain()?), &self.requests, connections, time)?;
        std::thread::sleep(SLOWLY);
        Ok(self.rows()? - rows)
    }

    /// Returns how often a thread of the service is woken for a create while one client waits for each answer.
    pub(crate) fn wakes_for_a_create(&mut self, time: Duration) -> anyhow::Result<f64> {
        let (wakes, acknowledged) = (self.wakes()?, self.acknowledged());
        self.load(Listener::Plain, 1, time)?;
        let (wakes, acknowledged) = (self.wakes()? - wakes, self.acknowledged() - acknowledged);
        Ok(wakes as f64 / acknowledged as f64)
    }

    /// Returns how often the threads of the service went to sleep.
    fn wakes(&self) -> anyhow::Result<u64> {
        let mut wakes = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.process()))? {
            // A thread may end at any moment.
            let status = fs::read_to_string(thread?.path().join("status")).unwrap_or_default();
            let switches = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            wakes += switches.and_then(|switches| switches.trim().parse::<u64>().ok()).unwrap_or_default();
        }
        Ok(wakes)
    }

    /// Makes each commit take a tenth of a second longer, for sessions that begin from here on.
    pub(crate) fn delay_commits(&mut self) -> anyhow::Result<()> {
        let database = self.folder.file_name().context("a name")?.to_string_lossy().into_owned();
        self.connect()?.batch_execute(&format!(
            "ALTER DATABASE {database} SET commit_delay = 100000; ALTER DATABASE {database} SET commit_siblings = 0"
        ))?;
        self.median_start(1).map(|_| ())
    }

    /// A file with requests that these keys send in turns.
    pub(crate) fn requests_file(&self, name: &str, keys: &[ApiKey]) -> anyhow::Result<PathBuf> {
        let path = self.folder.join(name);
        fs::write(&path, requests::lines(keys))?;
        Ok(path)
    }

    /// The key of the first organisation.
    pub(crate) fn first_key(&self) -> &[ApiKey] {
        self.keys.get(..1).unwrap_or_default()
    }
}
