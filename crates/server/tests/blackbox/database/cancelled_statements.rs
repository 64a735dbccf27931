//! An operator cancels the statements of the service, or gives its role a short time for each. That is no fault of a
//! patient: a request is carried out by another try, or gets 503.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use intake_infra::SERVICE_ROLE;
use intake_test_support::{Response, create_request, patient, wait_for};

use crate::fixtures::TestApp;

/// Long enough for hundreds of statements that are cancelled.
const TIME: Duration = Duration::from_secs(5);
const CLIENTS: usize = 8;
const CANCELLERS: usize = 3;

/// The answers to patients that are created for some time, with and without an `Idempotency-Key`.
fn create_for_a_time(app: &TestApp) -> Vec<Response> {
    let client = app.service.client();
    let one_after_the_other = |lane: usize| {
        let (started, mut connection) = (Instant::now(), client.connect());
        let mut answers = Vec::new();
        while started.elapsed() < TIME {
            let key = format!("{lane}-{}", answers.len());
            let headers: Vec<_> =
                lane.is_multiple_of(2).then_some(("Idempotency-Key", key.as_str())).into_iter().collect();
            answers.push(connection.exchange(&create_request(app.key(), &headers, patient().to_string().as_bytes())));
        }
        answers
    };
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..CLIENTS).map(|lane| scope.spawn(move || one_after_the_other(lane))).collect();
        lanes.into_iter().flat_map(|lane| lane.join().unwrap()).collect()
    })
}

/// Each patient was created, or may be sent again.
#[track_caller]
fn assert_no_failure(answers: &[Response]) {
    let is_failure = |answer: &&Response| match answer.status {
        201 => false,
        503 => answer.header("retry-after").is_none(),
        _ => true,
    };
    let failures: Vec<_> = answers.iter().filter(is_failure).map(|answer| answer.status).collect();
    assert!(failures.is_empty(), "{failures:?} among {}", answers.len());
}

#[test]
fn statements_that_are_cancelled_all_the_time_fail_no_request() {
    let app = TestApp::on_one_server(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    assert_eq!(app.create(&patient()).status, 201);
    let cancel = format!(
        "DO $$ BEGIN
            FOR round IN 1..100 LOOP
                PERFORM pg_stat_clear_snapshot();
                PERFORM pg_cancel_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND usename = '{SERVICE_ROLE}' AND state = 'active';
            END LOOP;
        END $$"
    );
    let is_over = AtomicBool::new(false);
    let answers = thread::scope(|scope| {
        for _ in 0..CANCELLERS {
            scope.spawn(|| {
                let mut superuser = app.database.connect();
                while !is_over.load(Ordering::Relaxed) {
                    superuser.batch_execute(&cancel).unwrap();
                }
            });
        }
        let answers = create_for_a_time(&app);
        is_over.store(true, Ordering::Relaxed);
        answers
    });
    assert_no_failure(&answers);
    assert!(app.service.output().contains("canceling statement"), "nothing was cancelled");
}

#[test]
fn a_role_with_too_little_time_for_a_statement_fails_no_request() {
    let app = TestApp::on_one_server(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    assert_eq!(app.create(&patient()).status, 201);
    let name = app.database.name();
    let limit = format!(
        "ALTER ROLE {SERVICE_ROLE} IN DATABASE {name} SET statement_timeout = '1ms';
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND usename = '{SERVICE_ROLE}'"
    );
    app.database.connect().batch_execute(&limit).unwrap();
    // On a busy machine it may take a while to be connected again.
    wait_for("a statement that took too long", || {
        assert_no_failure(&create_for_a_time(&app));
        app.service.output().contains("statement timeout")
    });
}
