//! A connection that works is given up only for one that was opened and checked: the service goes on when other
//! programs take every slot, when its limit is lowered, and when its password changes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{ApiKey, Environment};
use intake_infra::embedded::EmbeddedPostgres;
use intake_infra::{DatabaseUrl, Prepared, SERVICE_ROLE, prepare};
use intake_test_support::{Clinic, Service, WithCount, patient, request, wait_for};
use tempfile::TempDir;

use crate::commands::doctor::examine;
use crate::database::replication::{administer, server};
use crate::fixtures::{OverWhenDropped, program};

const REFUSED: &str = "the database refuses new connections";
const ACCEPTED: &str = "the database accepts new connections again";
/// More than the server has.
const SLOTS: usize = 250;

/// A service with a PostgreSQL of its own, which knows the service by its password.
struct Setup {
    service: Service,
    key: ApiKey,
    urls: Prepared,
    address: TempDir,
    /// Dropped after those that use it.
    postgres: EmbeddedPostgres,
    _folder: TempDir,
}

impl Setup {
    fn start() -> Self {
        let (folder, address) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let postgres = server(folder.path());
        let urls = prepare(&postgres, "intake").unwrap();
        let key = Clinic::open(&urls.service, Environment::Development).key().1;
        administer(&postgres, &format!("ALTER ROLE {SERVICE_ROLE} PASSWORD 'old'"));
        let rules = folder.path().join("postgres/data/pg_hba.conf");
        let others = std::fs::read_to_string(&rules).unwrap();
        std::fs::write(rules, format!("local all {SERVICE_ROLE} scram-sha-256\n{others}")).unwrap();
        administer(&postgres, "SELECT pg_reload_conf()");
        write_address(&urls, &address, "old");
        let service = program()
            .setting("DATABASE_URL_FILE", address.path().join("url"))
            .setting("INTAKE_MIGRATION_DATABASE_URL", urls.owner.expose())
            .start();
        Self { service, key, urls, address, postgres, _folder: folder }
    }

    /// Writes the address with this password into the file that the service reads.
    fn write_address(&self, password: &str) {
        write_address(&self.urls, &self.address, password);
    }

    fn create(&self) -> u16 {
        self.service.create(&self.key, &patient()).status
    }

    /// Asks up to three times, each for a check of its own: one may find a busy machine.
    fn is_ready(&self) -> bool {
        let is_ready = || self.service.probe("/readyz").status == 200;
        let is_ready_later = |()| {
            std::thread::sleep(Duration::from_millis(1_100));
            is_ready()
        };
        is_ready() || [(); 2].into_iter().any(is_ready_later)
    }

    /// Asserts that the service works, until something is so.
    fn goes_on_until(&self, is_over: impl Fn() -> bool) {
        let started = Instant::now();
        while !is_over() {
            assert!(started.elapsed() < Duration::from_secs(180), "{}", self.service.output());
            let (status, is_ready) = (self.create(), self.is_ready());
            assert!(status == 201 && is_ready, "{status} {is_ready}\n{}", self.service.output());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn says(&self, words: &str) -> usize {
        self.service.output().matches(words).count()
    }

    /// Returns how many backends there are of this kind, that the service works over.
    fn backends(&self, which: &str) -> i64 {
        let query =
            format!("SELECT count(*) AS count FROM pg_stat_activity WHERE usename = '{SERVICE_ROLE}' AND {which}");
        let mut owner = PgConnection::establish(self.urls.owner.expose()).unwrap();
        diesel::sql_query(query).get_result::<WithCount>(&mut owner).unwrap().count
    }

    fn end_backends(&self, which: &str) {
        administer(
            &self.postgres,
            &format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{SERVICE_ROLE}' AND {which}"
            ),
        );
    }

    /// Asserts that the service has said once why it has no new connections.
    fn has_said_why(&self, reason: &str) {
        let output = self.service.output();
        let lines: Vec<_> = output.lines().filter(|line| line.contains(REFUSED)).collect();
        assert!(lines.len() == 1 && lines[0].contains(reason), "{output}");
    }
}

fn write_address(urls: &Prepared, folder: &TempDir, password: &str) {
    // In one step, as tools for secrets do it.
    let unfinished = folder.path().join("unfinished");
    std::fs::write(&unfinished, format!("{} password={password}\n", urls.service.expose())).unwrap();
    std::fs::rename(unfinished, folder.path().join("url")).unwrap();
}

const WRITERS: &str = "query LIKE '%INTO patients%'";

#[test]
fn a_service_goes_on_while_other_programs_hold_every_slot() {
    let setup = Setup::start();
    assert!(setup.create() == 201 && setup.is_ready());
    administer(&setup.postgres, "CREATE ROLE neighbour LOGIN");
    let socket = setup.urls.owner.expose().replace("intake_owner", "neighbour");
    let neighbour: DatabaseUrl = socket.parse().unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _over = OverWhenDropped(&is_over);
        scope.spawn(|| {
            let mut held = Vec::new();
            while !is_over.load(Ordering::SeqCst) {
                match PgConnection::establish(neighbour.expose()) {
                    Ok(connection) if held.len() < SLOTS => held.push(connection),
                    _ => std::thread::sleep(Duration::from_millis(20)),
                }
            }
        });
        setup.goes_on_until(|| setup.says(REFUSED) > 0);
        // For some tries more.
        let until = Instant::now() + Duration::from_secs(15);
        setup.goes_on_until(|| Instant::now() > until);
        setup.has_said_why("connection slots");
    });
    setup.goes_on_until(|| setup.says(ACCEPTED) > 0);
}

#[test]
fn a_service_is_not_ready_only_when_its_last_connection_is_gone() {
    let setup = Setup::start();
    assert!(setup.create() == 201 && setup.is_ready());
    let limit = |limit| administer(&setup.postgres, &format!("ALTER ROLE {SERVICE_ROLE} CONNECTION LIMIT {limit}"));
    limit(0);
    setup.goes_on_until(|| setup.says(REFUSED) > 0);
    setup.has_said_why("too many connections for role");
    setup.end_backends(&format!("NOT {WRITERS}"));
    let until = Instant::now() + Duration::from_secs(5);
    setup.goes_on_until(|| Instant::now() > until);
    setup.end_backends("true");
    wait_for("the service not to be ready", || !setup.is_ready());
    let output = setup.service.output();
    assert!(output.contains("the database is away"), "{output}");
    limit(-1);
    wait_for("readiness", || setup.is_ready());
    assert_eq!(setup.create(), 201);
}

/// Work that comes at the same time as other work wants connections that it cannot have. Nothing may wait for those
/// afterwards, while others are idle.
#[test]
fn pages_go_on_over_the_connections_that_are_left() {
    let setup = Setup::start();
    assert!(setup.create() == 201 && setup.is_ready());
    administer(&setup.postgres, &format!("ALTER ROLE {SERVICE_ROLE} CONNECTION LIMIT 0"));
    let look = || setup.service.client().send(&request("GET", &format!("/invitations/{:064}", 0), &[], b"")).status;
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(look);
        }
    });
    for _ in 0..5 {
        assert_eq!(look(), 404, "{}", setup.service.output());
    }
}

#[test]
fn a_password_is_changed_without_a_refused_request() {
    let setup = Setup::start();
    assert!(setup.create() == 201 && setup.is_ready());
    let change = |password| administer(&setup.postgres, &format!("ALTER ROLE {SERVICE_ROLE} PASSWORD '{password}'"));
    // First the file, then the role.
    setup.write_address("new");
    change("new");
    let changed = Instant::now();
    let is_renewed = || {
        let age = changed.elapsed().as_secs();
        setup.backends(&format!("{WRITERS} AND backend_start > now() - interval '{age} seconds'")) > 0
    };
    setup.goes_on_until(is_renewed);

    // The role alone, and the file when the log has said what is wrong.
    change("newer");
    setup.goes_on_until(|| setup.says(REFUSED) > 0);
    setup.has_said_why("password authentication failed");
    setup.write_address("newer");
    setup.goes_on_until(|| setup.says(ACCEPTED) > 0);
}

/// PostgreSQL says only in its own log that a password has expired.
#[test]
fn an_expired_password_is_among_the_causes_that_the_doctor_names() {
    let setup = Setup::start();
    assert!(setup.create() == 201 && setup.is_ready());
    administer(&setup.postgres, "ALTER SYSTEM SET log_error_verbosity = 'terse'");
    administer(&setup.postgres, "SELECT pg_reload_conf()");
    administer(&setup.postgres, &format!("ALTER ROLE {SERVICE_ROLE} VALID UNTIL '2020-01-01'"));
    let doctor = || {
        let asked = program().setting("DATABASE_URL_FILE", setup.address.path().join("url"));
        let (_, parts, _) = examine(asked.setting("INTAKE_MIGRATION_DATABASE_URL", setup.urls.owner.expose()));
        parts.into_iter().find(|(part, ..)| part == "database").unwrap()
    };
    let (_, is_in_order, why) = doctor();
    assert!(is_in_order == Some(false) && why.contains("password authentication failed"), "{why}");
    assert!(why.contains("has expired") && why.contains("SELECT rolvaliduntil FROM pg_roles"), "{why}");
    setup.goes_on_until(|| setup.says(REFUSED) > 0);
    setup.has_said_why("password authentication failed");
    administer(&setup.postgres, &format!("ALTER ROLE {SERVICE_ROLE} VALID UNTIL 'infinity'"));
    assert_eq!(doctor().1, Some(true));
    setup.goes_on_until(|| setup.says(ACCEPTED) > 0);
}
