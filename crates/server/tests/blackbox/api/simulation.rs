//! Failures that an integrator can order, in development alone.

use std::time::Duration;

use intake_test_support::{Response, create_request, patient, request, wait_for};

use crate::fixtures::{TestApp, in_production, service};
use crate::{assert_problem, assert_unauthorised, fault};

fn create(app: &TestApp, idempotency_key: &str) -> Response {
    app.service.create_with(app.key(), &[("Idempotency-Key", idempotency_key)], patient().to_string().as_bytes())
}

#[test]
fn an_error_is_answered_as_often_as_it_is_ordered() {
    let app = TestApp::start();
    for _ in 0..2 {
        let limited = create(&app, "simulate-429-1");
        assert_problem(&limited, 429, "Too Many Requests", "The API key's rate limit is exceeded");
        assert_eq!(limited.header("retry-after"), Some("1"));
        let full = create(&app, "simulate-503-1");
        assert_problem(&full, 503, "Service Unavailable", "The service is overloaded; try again shortly");
        assert_eq!(full.header("retry-after"), Some("1"));
        assert_eq!(create(&app, "simulate-410-1").status, 410);
    }
    assert_eq!(app.patients(), 0);
    // Of two in a second the log has one.
    wait_for("the log", || app.service.output().contains("simulated"));
    assert_eq!(create(&app, "simulate-1").status, 201);
    assert_eq!(create(&app, "acme-simulate-503-1").status, 201);
}

#[test]
fn a_failure_that_is_ordered_twice_comes_twice_for_each_key_and_then_the_patient() {
    let app = TestApp::start();
    for key in ["simulate-503-twice-1", "simulate-503-twice-2"] {
        let statuses: Vec<_> = (0..4).map(|_| create(&app, key).status).collect();
        assert_eq!(statuses, [503, 503, 201, 201], "{key}");
    }
    assert_eq!(app.patients(), 2);
    let (_, other) = app.clinic.key();
    let ordered = [("Idempotency-Key", "simulate-503-twice-1")];
    assert_eq!(app.service.create_with(&other, &ordered, patient().to_string().as_bytes()).status, 503, "of its own");
}

#[test]
fn earlier_checks_answer_first() {
    let app = TestApp::start();
    let ordered = [("Idempotency-Key", "simulate-503-1")];
    let body = patient().to_string();
    assert_unauthorised(&app.service.create_with(&app.clinic.unknown_key(), &ordered, body.as_bytes()));
    let broken = crate::patient_with("country", "NZ").to_string();
    assert_eq!(fault(&app.service.create_with(app.key(), &ordered, broken.as_bytes()), "country"), "must be AU");
}

#[test]
fn an_answer_is_lost_or_late_once_and_the_patient_created() {
    let app = TestApp::start();
    let body = patient().to_string();
    for (number, key) in ["simulate-lost-answer-1", "simulate-slow-answer-1"].into_iter().enumerate() {
        let request = create_request(app.key(), &[("Idempotency-Key", key)], body.as_bytes());
        let mut connection = app.service.client().connect();
        connection.write(&request);
        assert!(connection.read_within(Duration::from_secs(2)).is_err(), "{key}");
        let again = app.service.client().send(&request);
        assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")), "{key}");
        assert_eq!(app.patients(), i64::try_from(number).unwrap() + 1);
    }
    assert_eq!(app.service.client().send(&request("GET", "/docs", &[], b"")).status, 200);
}

#[test]
fn nothing_is_simulated_in_production() {
    let database = intake_test_support::TestDatabase::durable();
    let service = in_production(service(&database)).start();
    let clinic = intake_test_support::Clinic::open(&database.service, intake_domain::Environment::Production);
    let (_, key) = clinic.key();
    for ordered in ["429", "503", "410", "lost-answer", "slow-answer"] {
        let ordered = format!("simulate-{ordered}-1");
        let headers = [("Idempotency-Key", ordered.as_str()), ("X-Forwarded-Proto", "https")];
        let request = create_request(&key, &headers, patient().to_string().as_bytes());
        assert_eq!(service.plain_client().send(&request).status, 201, "{ordered}");
    }
}
