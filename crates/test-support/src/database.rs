//! A fast PostgreSQL for all tests of a run, a durable one for tests of production, and a fresh, migrated database for
//! each test.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::Text;
use intake_domain::OrganisationId;
use intake_infra::embedded::{EmbeddedError, EmbeddedPostgres, Settings};
use intake_infra::{DatabaseUrl, Durability, SERVICE_ROLE, prepare};

use crate::citus::Citus;
use crate::failure::hold;
use crate::install::{end_for_want_of, install_postgres};

/// Template from which PostgreSQL makes an empty database.
const EMPTY: &str = "template1";

/// The database of one test, deleted when this is dropped.
pub struct TestDatabase {
    name: String,
    durability: Durability,
    /// The cluster that it lies on, if that is not PostgreSQL alone.
    pub(crate) citus: Option<Citus>,
    /// Connection of the last question: a new one takes many times as long as most questions.
    pub(crate) asked_over: Mutex<Option<PgConnection>>,
    /// The address for the owner of the schema.
    pub owner: DatabaseUrl,
    /// The address for the service's role.
    pub service: DatabaseUrl,
}

impl TestDatabase {
    /// A fresh, migrated database.
    #[must_use]
    pub fn new() -> Self {
        Self::from(&template_name(), Durability::None)
    }

    /// The same on PostgreSQL alone, wherever other tests run: for what only one server can be made to do.
    #[must_use]
    pub fn on_one_server() -> Self {
        Self::without_cluster(&template_name(), Durability::None)
    }

    /// A fresh, migrated database with full durability, which production requires.
    #[must_use]
    pub fn durable() -> Self {
        Self::from(&template_name(), Durability::Full)
    }

    /// A fresh, empty database.
    #[must_use]
    pub fn empty() -> Self {
        Self::from(EMPTY, Durability::None)
    }

    /// A fresh, empty database with full durability.
    #[must_use]
    pub fn empty_and_durable() -> Self {
        Self::from(EMPTY, Durability::Full)
    }

    /// The folder of the server's socket.
    #[must_use]
    pub fn socket_folder(&self) -> PathBuf {
        folder(self.durability).join("socket")
    }

    /// The database's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The cluster on which it lies.
    ///
    /// # Panics
    ///
    /// If `INTAKE_TEST_CITUS_URL` names none.
    #[must_use]
    pub fn citus(&self) -> &Citus {
        self.citus.as_ref().expect("INTAKE_TEST_CITUS_URL must name a cluster")
    }

    /// A connection as the owner, who may read everything.
    #[must_use]
    pub fn connect(&self) -> PgConnection {
        connect(&self.owner)
    }

    /// The same to the node of a cluster that holds the patients of this organisation.
    #[must_use]
    pub fn connect_to_patients_of(&self, organisation: OrganisationId) -> PgConnection {
        let at_home = |citus: &Citus| citus.owner_at(citus.node_of(&self.name, organisation), &self.name);
        connect(&self.citus.as_ref().map_or_else(|| self.owner.clone(), at_home))
    }

    /// Runs a statement that concerns the whole server; on a cluster, each of its nodes.
    pub fn administer(&self, sql: &str) {
        match &self.citus {
            Some(citus) => citus.on_every_node("postgres", sql),
            None => execute(self.durability, sql),
        }
    }

    /// Runs a statement for a table, which it calls `{table}`; on a cluster, for each shard, past Citus.
    pub fn on_each_part_of(&self, table: &str, sql: &str) {
        let sql = match &self.citus {
            Some(_) => {
                let on_shard = sql.replace("{table}", "%s");
                format!("SELECT * FROM run_command_on_shards('{table}', $sql${on_shard}$sql$) WHERE NOT success")
            }
            None => sql.replace("{table}", table),
        };
        assert_eq!(diesel::sql_query(sql).execute(&mut self.connect()).expect("the statement runs"), 0);
    }

    fn from(template: &str, durability: Durability) -> Self {
        let Some(citus) = Citus::named().filter(|_| durability == Durability::None) else {
            return Self::without_cluster(template, durability);
        };
        let name = next_name();
        citus.create(&name, template != EMPTY);
        let (owner, service) = (citus.owner(&name), citus.service(&name));
        Self { owner, service, name, durability, citus: Some(citus), asked_over: Mutex::default() }
    }

    fn without_cluster(template: &str, durability: Durability) -> Self {
        let (name, cluster) = (next_name(), cluster(durability));
        execute(durability, &format!("CREATE DATABASE {name} TEMPLATE {template}"));
        let (owner, service) = (cluster.owner_url(&name), cluster.url(SERVICE_ROLE, &name));
        Self { owner, service, name, durability, citus: None, asked_over: Mutex::default() }
    }
}

fn next_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

impl Default for TestDatabase {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        hold(|| format!("psql '{}'", self.owner.expose()));
        match &self.citus {
            Some(citus) => citus.drop(&self.name),
            None => execute(self.durability, &format!("DROP DATABASE {} WITH (FORCE)", self.name)),
        }
    }
}

fn execute(durability: Durability, sql: &str) {
    connect(&cluster(durability).owner_url("postgres")).batch_execute(sql).expect("the statement runs");
}

fn connect(url: &DatabaseUrl) -> PgConnection {
    PgConnection::establish(url.expose()).expect("the test cluster answers")
}

/// The cluster of this test run, shared by all its processes and stopped by its guard when the program that runs them
/// ends.
fn cluster(durability: Durability) -> &'static EmbeddedPostgres {
    static FAST: OnceLock<EmbeddedPostgres> = OnceLock::new();
    static DURABLE: OnceLock<EmbeddedPostgres> = OnceLock::new();
    let cluster = match durability {
        Durability::None => &FAST,
        Durability::Full => &DURABLE,
    };
    cluster.get_or_init(|| {
        let settings = Settings {
            folder: folder(durability),
            durability,
            programs: None,
            // The program that runs the tests: cargo or nextest.
            user: std::os::unix::process::parent_id(),
        };
        install_postgres();
        let cluster = match EmbeddedPostgres::start(&settings) {
            Ok(cluster) => cluster,
            Err(error @ EmbeddedError::NotInstalled(_)) => end_for_want_of(&error),
            Err(error) => panic!("the test cluster does not start: {error}"),
        };
        make_template(&cluster);
        cluster
    })
}

/// A folder that the server's account can reach; one for each checkout and user. In memory where there is plenty of it,
/// and `TMPDIR` does not say otherwise: each test makes and deletes hundreds of files, which takes a disk much longer.
fn folder(durability: Durability) -> PathBuf {
    const IN_MEMORY: &str = "/dev/shm";
    const PLENTY: u64 = 4 << 30;
    let is_roomy = rustix::fs::statvfs(IN_MEMORY).is_ok_and(|system| system.f_blocks * system.f_frsize >= PLENTY);
    let folder = if is_roomy && std::env::var_os("TMPDIR").is_none() { IN_MEMORY.into() } else { std::env::temp_dir() };
    let kind = if durability == Durability::Full { "durable-" } else { "" };
    let user = rustix::process::geteuid().as_raw();
    folder.join(format!("intake-tests-{kind}{user}{}", checkout().to_string_lossy().replace('/', "-")))
}

fn checkout() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate lies in the workspace")
}

/// The name contains a hash of the migrations and grants, so that a change of them makes a new template.
fn template_name() -> String {
    let mut files: Vec<_> = fs::read_dir(checkout().join("migrations"))
        .expect("the migrations are there")
        .map(|entry| entry.expect("the folder can be read").path().join("up.sql"))
        .filter(|file| file.exists())
        .collect();
    let schema = checkout().join("crates/infra/src/database/schema");
    files.extend(["grants.rs", "means_to_read.rs"].map(|file| schema.join(file)));
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        hasher.write(file.as_os_str().as_encoded_bytes());
        hasher.write(&fs::read(file).expect("the file can be read"));
    }
    format!("template_{:016x}", hasher.finish())
}

/// Makes the template if it does not exist, and drops the databases that killed tests left behind.
fn make_template(cluster: &EmbeddedPostgres) {
    #[derive(QueryableByName)]
    struct Database {
        #[diesel(sql_type = Text)]
        name: String,
    }

    let mut connection = connect(&cluster.owner_url("postgres"));
    // The lock ends with the connection.
    connection.batch_execute("SELECT pg_advisory_lock(1)").expect("the lock is free some time");
    let databases: Vec<Database> =
        diesel::sql_query("SELECT datname::text AS name FROM pg_database").load(&mut connection).expect("names");
    let template = template_name();
    if !databases.iter().any(|database| database.name == template) {
        let unfinished = format!("{template}_unfinished");
        // A template can have no connections, so it gets its name when it is finished.
        prepare(cluster, &unfinished).expect("the template is migrated");
        let rename = format!("ALTER DATABASE {unfinished} RENAME TO {template}");
        connection.batch_execute(&rename).expect("the template gets its name");
    }
    let is_left_behind = |name: &str| {
        let process = name.strip_prefix("test_").and_then(|rest| rest.split('_').next());
        process.is_some_and(|process| !Path::new("/proc").join(process).exists())
    };
    for database in databases.iter().filter(|database| is_left_behind(&database.name)) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", database.name);
        connection.batch_execute(&drop).expect("the database can be dropped");
    }
}
