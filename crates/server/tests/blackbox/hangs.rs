//! A database that hangs: it keeps its connections open and says nothing. Requests go on over another connection, the
//! service can be stopped, and what was sent twice is there once.

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use intake_domain::{ApiKey, Environment};
use intake_infra::SERVICE_ROLE;
use intake_infra::embedded::Durability;
use intake_test_support::{
    Clinic, RoundTripCounter, Service, ServiceBuilder, TestDatabase, create_request, patient, wait_for,
};

use crate::{assert_unauthorised, program};

/// A service behind whose back the database can be made to hang.
struct Hanging {
    service: Service,
    wire: RoundTripCounter,
    clinic: Clinic,
    key: ApiKey,
    database: TestDatabase,
}

impl Hanging {
    fn open() -> Self {
        Self::open_with(|builder| builder)
    }

    fn open_with(settings: impl FnOnce(ServiceBuilder) -> ServiceBuilder) -> Self {
        let database = TestDatabase::new();
        let wire = RoundTripCounter::before(&database.socket_folder());
        let url = wire.url(SERVICE_ROLE, database.name());
        let service = settings(program().database_urls(&url, &database.owner)).start();
        let clinic = Clinic::open(&database.service, Environment::Development);
        let (_, key) = clinic.key();
        Self { service, wire, clinic, key, database }
    }

    fn create(&self) -> u16 {
        self.service.create(&self.key, &patient()).status
    }
}

#[test]
fn a_statement_that_hangs_is_left_behind_and_sent_again() {
    let hanging = Hanging::open();
    assert_eq!(hanging.create(), 201);
    hanging.wire.hang();
    let asked = Instant::now();
    assert_eq!(hanging.create(), 201);
    assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    let asked = Instant::now();
    assert_eq!(hanging.create(), 201, "over the new connection");
    assert!(asked.elapsed() < Duration::from_millis(900), "{:?}", asked.elapsed());
    // The old one wakes, and does what it was told.
    hanging.wire.go_on();
    thread::sleep(Duration::from_millis(500));
    assert_eq!(hanging.create(), 201);
    assert_eq!(hanging.database.count("patients"), 4);
    assert!(hanging.service.output().contains("a statement hangs in the database"));
}

#[test]
fn a_key_that_is_revoked_while_a_statement_hangs_leaves_nobody_in_doubt() {
    let hanging = Hanging::open();
    assert_eq!(hanging.create(), 201);
    let (id, key) = hanging.clinic.key();
    hanging.wire.hang();
    let answer = thread::scope(|scope| {
        let answer = scope.spawn(|| hanging.service.create(&key, &patient()));
        thread::sleep(Duration::from_millis(300));
        hanging.clinic.revoke(id);
        answer.join().unwrap()
    });
    // Whether the first statement will be carried out nobody knows: neither 201 nor 401 would be true.
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_unauthorised(&hanging.service.create(&key, &patient()));
}

#[test]
fn probes_and_pages_leave_a_connection_that_hangs() {
    let hanging = Hanging::open();
    assert_eq!(hanging.service.probe("/readyz").status, 200);
    hanging.wire.hang();
    // Every connection of the pool may be one that hangs.
    wait_for("readiness", || hanging.service.probe("/readyz").status == 200);
    let asked = Instant::now();
    assert_eq!(hanging.service.probe("/readyz").status, 200);
    assert!(asked.elapsed() < Duration::from_millis(900), "{:?}", asked.elapsed());
}

#[test]
fn while_everything_hangs_requests_end_at_their_deadline_and_all_is_well_soon_after() {
    let hanging = Hanging::open_with(|builder| builder.setting("INTAKE_DEADLINE", "2s"));
    assert_eq!(hanging.create(), 201);
    hanging.wire.hang_for_all();
    for _ in 0..3 {
        let asked = Instant::now();
        assert_eq!(hanging.create(), 503);
        let waited = asked.elapsed();
        assert!((Duration::from_millis(1_900)..Duration::from_millis(2_900)).contains(&waited), "{waited:?}");
    }
    hanging.wire.go_on();
    let back = Instant::now();
    wait_for("a patient", || hanging.create() == 201);
    assert!(back.elapsed() < Duration::from_secs(2), "{:?}", back.elapsed());
}

#[test]
fn a_host_that_keeps_silent_holds_up_nobody_who_has_another() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let database = TestDatabase::new();
    let url = format!(
        "host=127.0.0.1,{} port={},5432 user={SERVICE_ROLE} dbname={} target_session_attrs=read-write",
        database.socket_folder().display(),
        silent.local_addr().unwrap().port(),
        database.name()
    );
    let url: intake_infra::DatabaseUrl = url.parse().unwrap();
    let service = program().database_urls(&url.with_durability(Durability::None), &database.owner).start();
    let clinic = Clinic::open(&database.service, Environment::Development);
    let (_, key) = clinic.key();
    let asked = Instant::now();
    assert_eq!(service.create(&key, &patient()).status, 201);
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
}

#[test]
fn a_service_whose_database_hangs_can_be_stopped() {
    let mut hanging = Hanging::open();
    assert_eq!(hanging.create(), 201);
    hanging.wire.hang_for_all();
    let mut waiting = hanging.service.client().connect();
    waiting.write(&create_request(&hanging.key, &[], patient().to_string().as_bytes()));
    let probe = hanging.service.probe("/readyz");
    assert_eq!(probe.status, 503);
    let asked = Instant::now();
    assert_eq!(hanging.service.stop().code(), Some(0), "{}", hanging.service.output());
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    assert_eq!(waiting.read().status, 503);
    assert!(hanging.service.output().contains("could not be written"), "{}", hanging.service.output());
}

#[test]
fn a_service_that_waits_while_it_starts_can_be_stopped() {
    let database = TestDatabase::new();
    let mut holder = database.connect();
    // As another program that migrates: the same lock.
    holder.batch_execute("SELECT pg_advisory_lock(x'696E74616B65'::bigint)").unwrap();
    let mut child = crate::service(&database).spawn();
    thread::sleep(Duration::from_millis(700));
    assert!(child.try_wait().unwrap().is_none(), "it waits");
    let asked = Instant::now();
    let killed = std::process::Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status();
    assert!(killed.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(asked.elapsed() < Duration::from_secs(6), "{:?}", asked.elapsed());
}

#[test]
fn whoever_holds_the_data_folder_is_told_of_and_does_not_keep_the_service_from_being_stopped() {
    use std::os::unix::fs::PermissionsExt;

    let database = TestDatabase::new();
    let folder = tempfile::tempdir().unwrap();
    let lock = std::fs::File::create(folder.path().join("lock")).unwrap();
    lock.lock().unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_intake"));
    let mut child = command
        .envs([("INTAKE_DATA_DIR", folder.path().to_str().unwrap()), ("INTAKE_DURABILITY", "none")])
        .envs([("DATABASE_URL", database.service.expose()), ("INTAKE_MIGRATION_DATABASE_URL", database.owner.expose())])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(4_000));
    let killed = std::process::Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status();
    assert!(killed.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let said = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert!(said.contains("waiting for another program that prepares the data folder"), "{said}");
    let mode = lock.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "nobody else's account may hold it: {mode:o}");
}
