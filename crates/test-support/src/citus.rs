//! A Citus cluster for tests, if there is one: `INTAKE_TEST_CITUS_URL` names a database on its coordinator, as a
//! superuser who needs no password. Each test gets a database of its own there, spread over the nodes.

use std::sync::Mutex;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Integer, Text};
use intake_domain::OrganisationId;
use intake_infra::grants::grant_service_role;
use intake_infra::spread::spread;
use intake_infra::{DatabaseUrl, Durability, SERVICE_ROLE, make_direct_writes, migrate};

/// As many as a small cluster has by default.
const SHARDS: u32 = 4;

/// Held by every test on the cluster, together with others or, by one that stops nodes, alone.
const IN_USE: &str = "pg_advisory_lock_shared(2)";

/// A cluster that runs already.
pub struct Citus {
    user: String,
    nodes: Vec<Node>,
    /// Holds the lock for as long as it is open.
    in_use: Mutex<Option<PgConnection>>,
}

#[derive(PartialEq, Eq, QueryableByName)]
struct Node {
    #[diesel(sql_type = Text)]
    host: String,
    #[diesel(sql_type = Integer)]
    port: i32,
}

impl Citus {
    /// The cluster of these tests, if one is named.
    pub(crate) fn named() -> Option<Self> {
        let url = std::env::var("INTAKE_TEST_CITUS_URL").ok().filter(|url| !url.is_empty())?;
        let mut connection =
            PgConnection::establish(&url).expect("INTAKE_TEST_CITUS_URL names a database that answers");
        // The coordinator first.
        let nodes = "SELECT nodename AS host, nodeport AS port FROM pg_dist_node ORDER BY groupid";
        let nodes = diesel::sql_query(nodes).load(&mut connection).expect("that database is one of a Citus cluster");
        let user = url.split_once("://").and_then(|(_, rest)| rest.split_once('@'));
        let user = user.map_or("postgres", |(user, _)| user).to_owned();
        let citus = Self { user, nodes, in_use: Mutex::default() };
        citus.use_with(IN_USE);
        Some(citus)
    }

    /// Another test may strike the coordinator while this one waits.
    fn use_with(&self, lock: &str) {
        let mut in_use = self.in_use.lock().expect("no test has panicked here");
        *in_use = None;
        let url = self.url(self.coordinator(), &self.user, "postgres");
        let try_to_lock = || {
            let mut connection = PgConnection::establish(url.expose()).ok()?;
            connection.batch_execute(&format!("SELECT {lock}")).ok().map(|()| connection)
        };
        let pause = || std::thread::sleep(Duration::from_millis(500));
        let locked = (0..120).find_map(|_| {
            try_to_lock().or_else(|| {
                pause();
                None
            })
        });
        *in_use = Some(locked.expect("the cluster is free some time"));
    }

    /// Waits until no other test uses the cluster, and keeps them away from it.
    pub fn use_alone(&self) {
        self.use_with("pg_advisory_lock(2)");
    }

    /// Returns how many nodes there are. The first is the coordinator.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The number of the shard of an organisation's patients.
    #[must_use]
    pub fn shard_of(&self, database: &str, organisation: OrganisationId) -> String {
        let query =
            format!("SELECT get_shard_id_for_distribution_column('patients', '{organisation}'::uuid)::text AS text");
        self.text_in(database, 0, &query)
    }

    /// Returns how the nodes call this one.
    #[must_use]
    pub fn name_of(&self, node: usize) -> String {
        let Node { host, port } = self.node(node);
        format!("{host}:{port}")
    }

    /// The number of the node that holds the patients of an organisation.
    #[must_use]
    pub fn node_of(&self, database: &str, organisation: OrganisationId) -> usize {
        let query = format!(
            "SELECT nodename::text AS host, nodeport AS port FROM pg_dist_placement JOIN pg_dist_node USING (groupid)
             WHERE shardid = get_shard_id_for_distribution_column('patients', '{organisation}'::uuid)"
        );
        let mut coordinator = self.connect(self.coordinator(), &self.user, database);
        let node: Node = diesel::sql_query(query).get_result(&mut coordinator).expect("the shard lies somewhere");
        self.nodes.iter().position(|other| other == &node).expect("on a node of the cluster")
    }

    /// The address of a node for this role.
    #[must_use]
    pub fn role_at(&self, node: usize, role: &str, database: &str) -> DatabaseUrl {
        self.url(self.node(node), role, database)
    }

    /// The address of a node for the owner.
    #[must_use]
    pub fn owner_at(&self, node: usize, database: &str) -> DatabaseUrl {
        self.url(self.node(node), &self.user, database)
    }

    /// Moves the organisation's shard to another worker, and what lies beside it. `mode` is Citus's word.
    pub fn move_shard(&self, database: &str, organisation: OrganisationId, to: usize, mode: &str) -> QueryResult<()> {
        self.move_shard_to(database, organisation, self.port(to), mode)
    }

    /// The same for a worker that may have been added to this database alone.
    pub fn move_shard_to(&self, database: &str, of: OrganisationId, port: i32, mode: &str) -> QueryResult<()> {
        let from = self.node(self.node_of(database, of));
        let call = format!(
            "SELECT citus_move_shard_placement(get_shard_id_for_distribution_column('patients', '{of}'::uuid),
             '{}', {}, '{}', {}, shard_transfer_mode => '{mode}')",
            from.host, from.port, from.host, port
        );
        self.connect(self.coordinator(), &self.user, database).batch_execute(&call)
    }

    /// The server processes of the nodes, if they run on this machine.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let query = "SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1) AS text";
        let process = |node| self.text(node, query).parse().expect("the number of a process");
        (0..self.nodes()).map(process).collect()
    }

    /// Writes a file on the coordinator's machine.
    pub(crate) fn write(&self, file: &str, text: &str) {
        let lines = format!("COPY (SELECT regexp_split_to_table($text${text}$text$, '\n')) TO '{file}'");
        self.connect(self.coordinator(), &self.user, "postgres").batch_execute(&lines).expect("the file is written");
    }

    /// Runs a command that strikes a node, as the account of another one.
    pub(crate) fn run(&self, struck: usize, command: &str) {
        let other = self.node(usize::from(struck == 0));
        let mut other = self.connect(other, &self.user, "postgres");
        let program = format!("COPY (SELECT 1) TO PROGRAM 'setsid sh -c \"{command}\" </dev/null >/dev/null 2>&1'");
        other.batch_execute(&program.replace("$", "\\$")).expect("the command succeeds");
    }

    pub(crate) fn setting(&self, node: usize, name: &str) -> String {
        self.text(node, &format!("SELECT current_setting('{name}') AS text"))
    }

    pub(crate) fn programs(&self) -> String {
        self.text(0, "SELECT setting AS text FROM pg_config WHERE name = 'BINDIR'")
    }

    pub(crate) fn text(&self, node: usize, query: &str) -> String {
        self.text_in("postgres", node, query)
    }

    fn text_in(&self, database: &str, node: usize, query: &str) -> String {
        #[derive(QueryableByName)]
        struct Found {
            #[diesel(sql_type = Text)]
            text: String,
        }

        let mut connection = self.connect(self.node(node), &self.user, database);
        diesel::sql_query(query).get_result::<Found>(&mut connection).expect("a superuser may ask").text
    }

    /// Makes a database on every node; migrated and spread, or with nothing but the extension.
    pub(crate) fn create(&self, name: &str, is_migrated: bool) {
        // One after the other: roles belong to all databases. The lock ends with the connection.
        let mut one_at_a_time = self.connect(self.coordinator(), &self.user, "postgres");
        one_at_a_time.batch_execute("SELECT pg_advisory_lock(1)").expect("the lock is free some time");
        self.on_every_node("postgres", &format!("CREATE DATABASE {name}"));
        self.on_every_node(name, "CREATE EXTENSION citus");
        let coordinator = self.coordinator();
        let mut set_up = format!("SELECT citus_set_coordinator_host('{}', {});", coordinator.host, coordinator.port);
        for Node { host, port } in self.nodes.iter().skip(1) {
            set_up += &format!("SELECT citus_add_node('{host}', {port});");
        }
        set_up += &format!(
            "DO $$ BEGIN CREATE ROLE {SERVICE_ROLE} LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        );
        self.connect(coordinator, &self.user, name).batch_execute(&set_up).expect("the nodes know each other");
        if is_migrated {
            let owner = self.owner(name);
            migrate(&owner).expect("the database is migrated");
            spread(&owner, Some(SHARDS)).expect("the database is spread");
            grant_service_role(&owner, SERVICE_ROLE).expect("the role has its grants");
            make_direct_writes(&owner).expect("the shards have their functions");
        }
    }

    pub(crate) fn drop(&self, name: &str) {
        // A background process of Citus may come back just then.
        let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        for node in &self.nodes {
            let mut node = self.connect(node, &self.user, "postgres");
            let pause = |_: &_| std::thread::sleep(Duration::from_millis(500));
            let mut tries = (0..60).map(|_| node.batch_execute(&drop).inspect_err(pause));
            assert!(tries.any(|tried| tried.is_ok()), "nobody uses the database");
        }
    }

    pub(crate) fn owner(&self, name: &str) -> DatabaseUrl {
        self.url(self.coordinator(), &self.user, name)
    }

    pub(crate) fn service(&self, name: &str) -> DatabaseUrl {
        self.url(self.coordinator(), SERVICE_ROLE, name)
    }

    fn coordinator(&self) -> &Node {
        self.node(0)
    }

    fn node(&self, number: usize) -> &Node {
        self.nodes.get(number).expect("the cluster has this many nodes")
    }

    pub(crate) fn on_every_node(&self, database: &str, sql: &str) {
        for node in &self.nodes {
            self.connect(node, &self.user, database).batch_execute(sql).expect("the statement runs on every node");
        }
    }

    /// The host of all nodes.
    pub(crate) fn host(&self) -> &str {
        &self.coordinator().host
    }

    pub(crate) fn port(&self, node: usize) -> i32 {
        self.node(node).port
    }

    /// Connects to a server that is no node of the cluster.
    pub(crate) fn connect_to(&self, port: u16, database: &str) -> ConnectionResult<PgConnection> {
        let node = Node { host: self.host().to_owned(), port: i32::from(port) };
        PgConnection::establish(self.url(&node, &self.user, database).expose())
    }

    fn connect(&self, node: &Node, user: &str, database: &str) -> PgConnection {
        PgConnection::establish(self.url(node, user, database).expose()).expect("the node answers")
    }

    fn url(&self, Node { host, port }: &Node, user: &str, database: &str) -> DatabaseUrl {
        let url: DatabaseUrl =
            format!("host={host} port={port} user='{user}' dbname={database}").parse().expect("an address");
        url.with_durability(Durability::None)
    }
}
