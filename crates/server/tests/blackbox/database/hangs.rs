//! A database that hangs: it keeps its connections open and says nothing. Requests go on over another connection, the
//! service can be stopped, and what was sent twice is there once.

use std::io::BufRead;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use intake_domain::Environment;
use intake_infra::{Durability, SERVICE_ROLE};
use intake_test_support::{Clinic, TestDatabase, create_request, patient, processes, wait_for, wait_for_end};

use crate::assert_unauthorised;
use crate::fixtures::{TestApp, in_time, program, service, time_of, wait_for_lock_waits};

/// A call that hangs keeps a service for ever, and each part of its end has a limit of a few seconds.
const STOPS_WITHIN: Duration = Duration::from_secs(60);

fn create(app: &TestApp) -> u16 {
    app.create(&patient()).status
}

#[test]
fn a_statement_that_hangs_is_abandoned_and_sent_again() {
    let (proxy, app) = TestApp::behind_a_proxy(|builder| builder);
    assert_eq!(create(&app), 201);
    proxy.hang();
    // A request that waited for the statement would get 503.
    assert_eq!(create(&app), 201);
    let mut created = 2;
    // Over the new connection: over the old one each would be abandoned after a second.
    in_time(Duration::from_millis(900), || {
        created += 1;
        time_of(|| assert_eq!(create(&app), 201))
    });
    // The old one wakes, and does what it was asked to do.
    proxy.resume();
    thread::sleep(Duration::from_millis(500));
    assert_eq!(create(&app), 201);
    assert_eq!(app.database.count("patients"), created + 1);
    assert!(app.service.output().contains("a statement hangs in the database"));
}

#[test]
fn a_key_that_is_revoked_while_a_statement_hangs_leaves_nobody_in_doubt() {
    let (proxy, app) = TestApp::behind_a_proxy(|builder| builder);
    assert_eq!(create(&app), 201);
    let (id, key) = app.clinic.key();
    // A key that is not known yet is found first, which leaves nothing in doubt.
    assert_eq!(app.service.create(&key, &patient()).status, 201);
    proxy.hang_for_all();
    let answer = thread::scope(|scope| {
        let answer = scope.spawn(|| app.service.create(&key, &patient()));
        wait_for("a statement on its way", || app.service.output().contains("a statement hangs in the database"));
        app.clinic.revoke(id);
        // Those that are open still hang; new ones work.
        proxy.hang();
        answer.join().unwrap()
    });
    // Whether the first statement will be carried out nobody knows: neither 201 nor 401 would be true.
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_unauthorised(&app.service.create(&key, &patient()));
}

#[test]
fn probes_and_pages_leave_a_connection_that_hangs() {
    let (proxy, app) = TestApp::behind_a_proxy(|builder| builder);
    app.service.wait_until_ready();
    proxy.hang();
    // The answer of a probe is used for a second.
    let pause = || thread::sleep(Duration::from_millis(1_100));
    pause();
    // Every connection of the pool may be one that hangs.
    app.service.wait_until_ready();
    // From then on none of them is met.
    in_time(Duration::from_millis(900), || {
        pause();
        time_of(|| app.service.wait_until_ready())
    });
}

#[test]
fn while_everything_hangs_requests_end_at_their_deadline_and_all_is_well_soon_after() {
    let (proxy, app) = TestApp::behind_a_proxy(|builder| builder.setting("INTAKE_DEADLINE", "2s"));
    assert_eq!(create(&app), 201);
    proxy.hang_for_all();
    for _ in 0..3 {
        in_time(Duration::from_millis(2_900), || {
            let waited = time_of(|| assert_eq!(create(&app), 503));
            assert!(waited >= Duration::from_millis(1_900), "{waited:?}");
            waited
        });
    }
    in_time(Duration::from_secs(2), || {
        proxy.hang_for_all();
        assert_eq!(create(&app), 503);
        proxy.resume();
        time_of(|| wait_for("a patient", || create(&app) == 201))
    });
}

#[test]
fn a_silent_host_delays_nobody_while_another_host_answers() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let database = TestDatabase::new();
    let url = format!(
        "host=127.0.0.1,{} port={},5432 user={SERVICE_ROLE} dbname={} target_session_attrs=read-write",
        database.socket_folder().display(),
        silent.local_addr().unwrap().port(),
        database.name()
    );
    let url: intake_infra::DatabaseUrl = url.parse().unwrap();
    let url = url.with_durability(Durability::None);
    let clinic = Clinic::open(&database.service, Environment::Development);
    let (_, key) = clinic.key();
    // Trying the hosts one after the other would wait for two seconds at the first.
    in_time(Duration::from_secs(1), || {
        let service = program().database_urls(&url, &database.owner).start();
        time_of(|| assert_eq!(service.create(&key, &patient()).status, 201))
    });
}

#[test]
fn a_service_whose_database_hangs_can_be_stopped() {
    let (proxy, mut app) = TestApp::behind_a_proxy(|builder| builder.setting("INTAKE_DEADLINE", "5s"));
    assert_eq!(create(&app), 201);
    proxy.hang_for_all();
    let mut waiting = app.service.client().connect();
    waiting.write(&create_request(app.key(), &[], patient().to_string().as_bytes()));
    let probe = app.service.probe("/readyz");
    assert_eq!(probe.status, 503);
    let took = time_of(|| assert_eq!(app.service.stop().code(), Some(0), "{}", app.service.output()));
    assert!(took < STOPS_WITHIN, "{took:?}");
    assert_eq!(waiting.read().status, 503);
    assert!(app.service.output().contains("could not be written"), "{}", app.service.output());
}

#[test]
fn a_service_that_waits_while_it_starts_can_be_stopped() {
    let database = TestDatabase::new();
    let mut holder = database.connect();
    // As another program that migrates: the same lock.
    holder.batch_execute("SELECT pg_advisory_lock(x'696E74616B65'::bigint)").unwrap();
    let mut child = service(&database).spawn();
    wait_for_lock_waits(&database, 1);
    let took = time_of(|| {
        processes::send("TERM", &child.id().to_string());
        assert_eq!(wait_for_end(&mut child).code(), Some(0));
    });
    assert!(took < STOPS_WITHIN, "{took:?}");
}

#[test]
fn a_process_that_locks_the_data_folder_is_named_and_does_not_block_a_stop() {
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
    let (sender, said) = std::sync::mpsc::channel();
    let lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
    let tells = |line: String| line.contains("waiting for another program that prepares the data folder");
    wait_for("a line about it", || said.try_iter().any(tells));
    processes::send("TERM", &child.id().to_string());
    assert_eq!(wait_for_end(&mut child).code(), Some(0));
    let mode = lock.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "nobody else's account may hold it: {mode:o}");
}
