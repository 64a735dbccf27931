//! Nodes that a test adds to its database on a Citus cluster: a third worker, or a standby of a node.

use diesel::QueryResult;
use diesel::connection::SimpleConnection;

use crate::citus::Citus;
use crate::database::TestDatabase;
use crate::ports::free_port;
use crate::service::wait_for;

/// A server beside the cluster and of its programs; it ends when this is dropped.
pub struct ExtraNode<'a> {
    citus: &'a Citus,
    folder: String,
    port: u16,
}

impl Drop for ExtraNode<'_> {
    fn drop(&mut self) {
        let (folder, programs) = (&self.folder, self.citus.programs());
        let stop = format!("{programs}/pg_ctl -w -s -D {folder}/data -m immediate stop; rm -rf {folder}");
        self.citus.run(1, &stop);
    }
}

impl ExtraNode<'_> {
    /// Its port; its host is that of the other nodes.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Runs statements there, as a superuser.
    pub fn execute(&self, database: &str, sql: &str) -> QueryResult<()> {
        self.citus.connect_to(self.port, database).expect("the server answers").batch_execute(sql)
    }

    /// Makes a standby the server that is written to.
    pub fn promote(&self) {
        self.execute("postgres", "SELECT pg_promote()").expect("the standby is promoted");
    }
}

impl TestDatabase {
    /// Returns whether it lies on a cluster.
    #[must_use]
    pub fn is_on_cluster(&self) -> bool {
        self.citus.is_some()
    }
}

impl Citus {
    /// Adds a worker to this database, with its data in a folder that exists, if one is given.
    #[must_use]
    pub fn add_worker(&self, database: &TestDatabase, folder: Option<&str>) -> ExtraNode<'_> {
        let node = self.extra_node("worker");
        let (own, programs, name) = (&node.folder, self.programs(), database.name());
        if let Some(folder) = folder {
            self.run(1, &format!("ln -s {folder} {own}/data"));
        }
        let options = format!("-U postgres -A trust -E UTF8 --no-locale --no-sync -X {own}/log -D {own}/data");
        self.run(1, &format!("{programs}/initdb {options}"));
        let conninfo = self.setting(0, "citus.node_conninfo");
        let settings = "shared_preload_libraries = 'citus'\nwal_level = logical\nfsync = off";
        node.start(&format!("{settings}\ncitus.node_conninfo = '{conninfo}'"));
        let role = intake_infra::SERVICE_ROLE;
        let roles = format!("CREATE ROLE {role} LOGIN; CREATE DATABASE {name}");
        for statement in roles.split(';') {
            node.execute("postgres", statement).expect("the new worker has the database");
        }
        node.execute(name, "CREATE EXTENSION citus").expect("the new worker has Citus");
        let add = format!("SELECT citus_add_node('{}', {})", self.host(), node.port);
        database.connect().batch_execute(&add).expect("the worker is added");
        node
    }

    /// Makes a standby of a node, which has caught up.
    #[must_use]
    pub fn standby_of(&self, number: usize) -> ExtraNode<'_> {
        let node = self.extra_node("standby");
        let (own, programs) = (&node.folder, self.programs());
        let from = format!("-h {} -p {} -U postgres", self.host(), self.port(number));
        self.run(usize::from(number == 0), &format!("{programs}/pg_basebackup {from} -R -N -c fast -D {own}/data"));
        node.start("");
        node
    }

    /// The folder of the coordinator's data.
    #[must_use]
    pub fn data_folder(&self) -> String {
        self.setting(0, "data_directory")
    }

    /// Waits until every standby of this node has all that was committed.
    pub fn wait_for_standbys(&self, node: usize) {
        let query = "SELECT (count(*) > 0 AND bool_and(replay_lsn >= pg_current_wal_lsn()))::text AS text FROM pg_stat_replication";
        wait_for("the standbys", || self.text(node, query) == "true");
    }

    fn extra_node(&self, kind: &str) -> ExtraNode<'_> {
        let port = free_port();
        let folder = format!("{}/../{kind}-{port}", self.setting(0, "data_directory"));
        self.run(1, &format!("mkdir -p {folder}"));
        ExtraNode { citus: self, folder, port }
    }
}

impl ExtraNode<'_> {
    fn start(&self, settings: &str) {
        let (own, programs) = (&self.folder, self.citus.programs());
        let address = format!("listen_addresses = '{}'\nunix_socket_directories = ''", self.citus.host());
        let settings = format!("{address}\nport = {}\n{settings}", self.port);
        self.citus.write(&format!("{own}/settings"), &settings);
        self.citus.run(1, &format!("cat {own}/settings >> {own}/data/postgresql.auto.conf"));
        self.citus.run(1, &format!("{programs}/pg_ctl -w -s -D {own}/data -l {own}/server.log start"));
    }
}
