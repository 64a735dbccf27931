//! The log of requests: one line for each, when it is wanted, with what an operator needs to find a request again.

use intake_domain::ApiKey;
use intake_test_support::{Service, create_request, patient, request, wait_for};
use serde_json::Value;

use crate::fixtures::TestApp;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn with_log() -> TestApp {
    TestApp::start_with(|builder| builder.setting("INTAKE_LOG", "info,intake::requests=info"))
}

/// The lines so far, as soon as there are so many.
fn lines(service: &Service, count: usize) -> Vec<Value> {
    let mut lines = Vec::new();
    wait_for("the lines", || {
        let output = service.output();
        let all = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines = all.filter(|line| line["target"] == "intake::requests").collect();
        lines.len() >= count
    });
    assert_eq!(lines.len(), count);
    lines
}

fn send(app: &TestApp, key: &ApiKey, headers: &[(&str, &str)]) {
    let _ = app.service.client().send(&create_request(key, headers, patient().to_string().as_bytes()));
}

#[test]
fn a_request_is_one_line_with_all_that_finds_it_again() {
    let app = with_log();
    let (key_id, key) = app.clinic.key();
    let traceparent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    send(&app, &key, &[("X-Request-Id", "one"), ("traceparent", &traceparent)]);
    send(&app, &app.clinic.unknown_key(), &[("X-Request-Id", "two")]);
    let lines = lines(&app.service, 2);
    let created = &lines[0];
    for (member, expected) in [
        ("level", "INFO"),
        ("message", "answered"),
        ("method", "POST"),
        ("route", "/api/v1/patients"),
        ("request_id", "one"),
        ("key_id", &key_id.to_string()),
        ("organisation_id", &app.clinic.organisation.to_string()),
        ("trace_id", TRACE),
    ] {
        assert_eq!(created[member], expected, "{member}");
    }
    assert_eq!(created["status"], 201);
    let milliseconds = created["duration_ms"].as_f64().unwrap();
    assert!(milliseconds > 0.0 && milliseconds < 60_000.0, "{created}");
    let refused = &lines[1];
    assert_eq!((&refused["request_id"], &refused["status"]), (&"two".into(), &401.into()));
    for member in ["key_id", "organisation_id", "trace_id"] {
        assert!(refused.get(member).is_none(), "{refused}");
    }
}

#[test]
fn pages_and_plain_http_have_their_lines_too() {
    let app = with_log();
    let _ = app.service.client().send(&request("GET", "/sign-in", &[], b""));
    let _ = app.service.plain_client().send(&request("PUT", "/no/such/path", &[], b""));
    let lines = lines(&app.service, 2);
    let found = lines.iter().map(|line| (line["method"].clone(), line["route"].clone(), line["status"].clone()));
    let expected = [("GET", "/sign-in", 200), ("PUT", "none", 426)];
    assert!(
        found.eq(expected.map(|(method, route, status)| (method.into(), route.into(), status.into()))),
        "{lines:?}"
    );
}

#[test]
fn without_being_asked_for_there_is_no_line() {
    for filter in ["info", "debug"] {
        let app = TestApp::start_with(|builder| builder.setting("INTAKE_LOG", filter));
        send(&app, app.key(), &[]);
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(!app.service.output().contains("intake::requests"), "{filter}: {}", app.service.output());
    }
}
