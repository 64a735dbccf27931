//! Nodes of a Citus cluster that a test stops or freezes, and puts back to an earlier state.

use crate::citus::Citus;

/// A node that was stopped or frozen; it goes on when this is dropped.
pub struct StruckNode<'a> {
    citus: &'a Citus,
    node: usize,
    folder: String,
    end: String,
}

impl StruckNode<'_> {
    /// Starts a stopped node with other variables, as arguments of `env`.
    #[must_use]
    pub fn with_variables(mut self, variables: &str) -> Self {
        self.end = format!("env {variables} {}", self.end);
        self
    }

    /// Makes a backup of a stopped node: a copy of its files.
    pub fn back_up(&self) {
        let folder = &self.folder;
        self.citus.run(self.node, &format!("rm -rf {folder}.backup; cp -a {folder} {folder}.backup"));
    }

    /// Puts the backup in the place of the files of a stopped node.
    pub fn restore(&self) {
        let folder = &self.folder;
        self.citus.run(self.node, &format!("rm -rf {folder} && cp -a {folder}.backup {folder}"));
    }
}

impl Drop for StruckNode<'_> {
    fn drop(&mut self) {
        self.citus.run(self.node, &self.end);
    }
}

impl Citus {
    /// Pulls the plug of a node that runs on the machine of all. No other test must use the cluster.
    #[must_use]
    pub fn stop_node(&self, node: usize) -> StruckNode<'_> {
        let (folder, programs) = (self.setting(node, "data_directory"), self.programs());
        self.run(node, &format!("{programs}/pg_ctl -w -s -D {folder} -m immediate stop"));
        let end = format!("{programs}/pg_ctl -w -s -D {folder} -l {folder}/../restarted.log start");
        StruckNode { citus: self, node, folder, end }
    }

    /// Makes a backup of a running node, which begins another timeline when it is put in the place of its files.
    pub fn base_backup(&self, node: usize) {
        let (folder, programs) = (self.setting(node, "data_directory"), self.programs());
        let from = format!("-h {} -p {} -U postgres", self.host(), self.port(node));
        let promote = "echo restore_command=false >> postgresql.auto.conf; touch recovery.signal";
        let make = format!("{programs}/pg_basebackup {from} -c fast -D {folder}.backup");
        self.run(node, &format!("rm -rf {folder}.backup; {make} && cd {folder}.backup && {promote}"));
    }

    /// Makes a node hang: it keeps its connections and does nothing.
    #[must_use]
    pub fn freeze_node(&self, node: usize) -> StruckNode<'_> {
        let folder = self.setting(node, "data_directory");
        let signal = |name: &str| format!("p=$(head -1 {folder}/postmaster.pid); kill -{name} $p $(pgrep -P $p)");
        self.run(node, &signal("STOP"));
        let end = signal("CONT");
        StruckNode { citus: self, node, folder, end }
    }
}
