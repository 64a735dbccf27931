//! PgBouncer before the database: one that gives each client a connection of its own will do, one that shares them is
//! refused by name.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use intake_domain::Environment;
use intake_infra::embedded::Packages;
use intake_infra::{DatabaseUrl, Durability, SERVICE_ROLE};
use intake_test_support::{
    Clinic, Prerequisite, TestDatabase, create_request, free_port, leave_out, patient, wait_for,
};

use crate::complaint;
use crate::fixtures::program;

const PGBOUNCER: Prerequisite = Prerequisite {
    subject: "poolers",
    need: "PgBouncer",
    packages: Packages {
        apt: "apt-get install pgbouncer",
        dnf: "dnf install pgbouncer",
        brew: "brew install pgbouncer",
    },
};

/// A running PgBouncer, killed when dropped.
struct Pooler {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Pooler {
    /// None, where there is none: the test is left out then; under CI it fails.
    fn start(database: &TestDatabase, mode: &str) -> Option<Self> {
        Self::start_with(database, mode, "")
    }

    /// An empty password: none is asked for.
    fn start_with(database: &TestDatabase, mode: &str, password: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let port = free_port();
        let socket = database.socket_folder();
        let authentication = if password.is_empty() { "trust" } else { "plain" };
        let settings = format!(
            "[databases]\n* = host={} port=5432\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = {authentication}\nauth_file = {}\npool_mode = {mode}\ndefault_pool_size = 20\n",
            socket.display(),
            folder.path().join("users").display()
        );
        fs::write(folder.path().join("users"), format!("\"{SERVICE_ROLE}\" \"{password}\"\n")).unwrap();
        fs::write(folder.path().join("pgbouncer.ini"), settings).unwrap();
        // The server's socket is for its own account alone, and PgBouncer does not run as root.
        let account = fs::metadata(&socket).unwrap();
        let mut command = Command::new("pgbouncer");
        if rustix::process::geteuid().is_root() {
            command.uid(account.uid()).gid(account.gid());
        }
        let started = command
            .env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap()))
            .arg(folder.path().join("pgbouncer.ini"))
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = started else {
            leave_out(&PGBOUNCER);
            return None;
        };
        wait_for("PgBouncer", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(Self { child, port, _folder: folder })
    }

    fn url(&self, database: &TestDatabase) -> DatabaseUrl {
        let url = format!("postgres://{SERVICE_ROLE}@127.0.0.1:{}/{}", self.port, database.name());
        url.parse::<DatabaseUrl>().unwrap().with_durability(Durability::None)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_pooler_that_gives_each_client_its_own_connection_will_do() {
    let database = TestDatabase::new();
    let Some(pooler) = Pooler::start(&database, "session") else { return };
    let service = program().database_urls(&pooler.url(&database), &database.owner).start();
    let clinic = Clinic::open(&database.service, Environment::Development);
    let (id, key) = clinic.key();
    std::thread::scope(|scope| {
        for number in 0..16 {
            let (service, key) = (&service, &key);
            scope.spawn(move || {
                let retry = number.to_string();
                let request = create_request(key, &[("Idempotency-Key", &retry)], patient().to_string().as_bytes());
                let mut connection = service.client().connect();
                for _ in 0..2 {
                    assert_eq!(connection.exchange(&request).status, 201);
                }
            });
        }
    });
    clinic.revoke(id);
    assert_eq!(service.create(&key, &patient()).status, 401);
    service.wait_until_ready();
    assert_eq!(database.count("patients"), 16);
}

#[test]
fn a_pooler_that_shares_connections_is_refused_by_name() {
    for mode in ["transaction", "statement"] {
        let database = TestDatabase::new();
        let Some(pooler) = Pooler::start(&database, mode) else { return };
        let line = complaint(program().database_urls(&pooler.url(&database), &database.owner));
        assert!(line.contains("PgBouncer") && line.contains("pool_mode = session"), "{mode}: {line}");
        let organisation = uuid::Uuid::from_u128(7).to_string();
        let arguments = ["export", "--format", "jsonl", "--organisation", &organisation];
        let export = program().database_urls(&pooler.url(&database), &database.owner);
        let line = complaint(arguments.iter().fold(export, |all, one| all.argument(one)));
        assert!(line.contains("pool_mode = session"), "{mode}: {line}");
    }
}

/// A pooler asks for the password, because the server of the tests asks nobody.
#[test]
fn a_password_is_found_in_the_file_that_libpq_reads_it_from() {
    let database = TestDatabase::new();
    let Some(pooler) = Pooler::start_with(&database, "session", "Canary-Bird") else { return };
    let url = pooler.url(&database);
    let without = complaint(program().database_urls(&url, &database.owner).setting("HOME", "/nonexistent"));
    assert!(without.starts_with("intake: DATABASE_URL") && !without.contains("Canary"), "{without}");

    let home = tempfile::tempdir().unwrap();
    let file = home.path().join(".pgpass");
    fs::write(&file, format!("127.0.0.1:{}:*:{SERVICE_ROLE}:Canary-Bird\n", pooler.port)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let service = program().database_urls(&url, &database.owner).setting("PGPASSFILE", &file).start();
    let clinic = Clinic::open(&database.service, Environment::Development);
    assert_eq!(service.create(&clinic.key().1, &patient()).status, 201);
    assert!(!service.output().contains("Canary"), "{}", service.output());
}
