//! Stopping: what was accepted is finished, idle connections do not hold it up, and nothing stays behind.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use intake_test_support::{Connection, create_request, patient, wait_for};

use crate::fixtures::{TestApp, in_time, program, time_of, wait_for_lock_waits};

fn wait_until_it_stops(app: &TestApp) {
    wait_for("the line about it", || app.service.output().contains("stopping: accepted requests are finished first"));
}

#[test]
fn both_signals_end_the_service_cleanly_and_soon() {
    for signal in ["TERM", "INT"] {
        // Accepted requests would have eleven seconds, and an idle connection is none.
        in_time(Duration::from_secs(5), || {
            let mut app = TestApp::start();
            let mut idle = app.service.client().connect();
            assert_eq!(idle.exchange(&create_request(app.key(), &[], patient().to_string().as_bytes())).status, 201);
            time_of(|| {
                app.service.signal(signal);
                assert_eq!(app.service.wait().code(), Some(0), "{}", app.service.output());
            })
        });
    }
}

/// A service that stops while a request waits in the database, where another connection holds the table.
fn stopping_with_a_request() -> (TestApp, PgConnection, Connection) {
    let app = TestApp::start();
    let mut holder = app.database.connect();
    holder.batch_execute("BEGIN; LOCK TABLE patients").unwrap();
    let mut connection = app.service.client().connect();
    connection.write(&create_request(app.key(), &[], patient().to_string().as_bytes()));
    wait_for_lock_waits(&app.database, 1);
    app.service.signal("TERM");
    wait_until_it_stops(&app);
    (app, holder, connection)
}

#[test]
fn a_request_that_was_accepted_is_finished() {
    let (mut app, mut holder, mut connection) = stopping_with_a_request();
    holder.batch_execute("COMMIT").unwrap();
    assert_eq!(connection.read().status, 201);
    assert_eq!(app.service.wait().code(), Some(0));
    assert_eq!(app.patients(), 1);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let (mut app, _holder, _connection) = stopping_with_a_request();
    app.service.signal("TERM");
    assert_eq!(app.service.wait().code(), Some(130));
}

#[test]
fn signals_that_ask_for_nothing_end_nothing() {
    let app = TestApp::start();
    for signal in ["USR1", "USR2", "HUP", "USR1", "HUP"] {
        app.service.signal(signal);
        assert_eq!(app.create(&patient()).status, 201, "after SIG{signal}");
    }
}

#[test]
fn the_last_use_of_a_key_is_written_before_the_end() {
    let mut app = TestApp::start();
    assert_eq!(app.create(&patient()).status, 201);
    assert!(app.service.stop().success());
    assert_eq!(app.database.count("key_uses WHERE last_used_at IS NOT NULL"), 1);
}

#[test]
fn a_lock_on_the_table_of_uses_does_not_delay_the_end() {
    let mut app = TestApp::start();
    assert_eq!(app.create(&patient()).status, 201);
    let mut holder = app.database.connect();
    holder.batch_execute("BEGIN; LOCK TABLE key_uses").unwrap();
    // The table is held until the service has ended.
    assert!(app.service.stop().success());
}

#[test]
fn the_embedded_database_stops_with_the_service() {
    let mut service = program().start();
    let pid_file = service.data_dir().join("postgres/data/postmaster.pid");
    assert!(pid_file.exists());
    assert_eq!(service.stop().code(), Some(0), "{}", service.output());
    assert!(!pid_file.exists());
}
