//! A Citus cluster for tests, if there is one: `INTAKE_TEST_CITUS_URL` names a database on its coordinator, as a superuser who
//! needs no password. Each test gets a database of its own there, spread over the nodes.

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Integer, Text};
use intake_infra::grants::grant_service_role;
use intake_infra::migrations::migrate;
use intake_infra::spread::spread;
use intake_infra::{DatabaseUrl, Durability, SERVICE_ROLE};

/// As many as a small cluster has by default.
const SHARDS: u32 = 4;

/// A cluster that runs already.
pub(crate) struct Citus {
    user: String,
    nodes: Vec<Node>,
}

#[derive(QueryableByName)]
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
        Some(Self { user: user.map_or("postgres", |(user, _)| user).to_owned(), nodes })
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
        }
    }

    pub(crate) fn drop(&self, name: &str) {
        self.on_every_node("postgres", &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
    }

    pub(crate) fn owner(&self, name: &str) -> DatabaseUrl {
        self.url(self.coordinator(), &self.user, name)
    }

    pub(crate) fn service(&self, name: &str) -> DatabaseUrl {
        self.url(self.coordinator(), SERVICE_ROLE, name)
    }

    fn coordinator(&self) -> &Node {
        self.nodes.first().expect("a cluster has nodes")
    }

    fn on_every_node(&self, database: &str, sql: &str) {
        for node in &self.nodes {
            self.connect(node, &self.user, database).batch_execute(sql).expect("the statement runs on every node");
        }
    }

    fn connect(&self, node: &Node, user: &str, database: &str) -> PgConnection {
        PgConnection::establish(self.url(node, user, database).expose()).expect("the node answers")
    }

    fn url(&self, Node { host, port }: &Node, user: &str, database: &str) -> DatabaseUrl {
        let url: DatabaseUrl = format!("postgres://{user}@{host}:{port}/{database}").parse().expect("an address");
        url.with_durability(Durability::None)
    }
}
