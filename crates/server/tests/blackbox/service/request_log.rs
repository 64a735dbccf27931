//! The log of requests: one line for each, when it is wanted, with what an operator needs to find a request again.

use intake_domain::ApiKey;
use intake_test_support::{Service, create_request, patient, request, wait_for};
use serde_json::Value;

use crate::fixtures::TestApp;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn with_log() -> TestApp {
    TestApp::start_with(|builder| builder.setting("INTAKE_LOG", "info,intake::requests=info"))
}

/// The lines so far, as soon as there are this many.
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
        ("address", "127.0.0.1"),
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
fn an_answer_that_repeats_the_first_is_marked() {
    let app = with_log();
    let key = app.clinic.key().1;
    for id in ["first", "again"] {
        send(&app, &key, &[("X-Request-Id", id), ("Idempotency-Key", "once")]);
    }
    let lines = lines(&app.service, 2);
    let replayed = |id: &str| lines.iter().find(|line| line["request_id"] == id).unwrap().get("replayed").cloned();
    assert_eq!((replayed("first"), replayed("again")), (None, Some(true.into())));
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
fn the_line_names_the_client_of_a_proxy_and_believes_nobody_else() {
    let app = TestApp::start_with(|builder| {
        let builder = builder.setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1");
        builder.setting("INTAKE_LOG", "info,intake::requests=info")
    });
    let headers = [("X-Forwarded-For", "198.51.100.7, 203.0.113.9"), ("X-Forwarded-Proto", "https")];
    let _ = app.service.plain_client().send(&request("GET", "/sign-in", &headers, b""));
    // No proxy ends TLS in front of this listener.
    let _ = app.service.client().send(&request("GET", "/sign-in", &headers, b""));
    let lines = lines(&app.service, 2);
    assert_eq!((&lines[0]["address"], &lines[1]["address"]), (&"203.0.113.9".into(), &"127.0.0.1".into()));
}

#[test]
fn a_running_service_is_asked_for_the_lines_by_a_signal() {
    let app = TestApp::start();
    let get = || app.service.client().send(&request("GET", "/sign-in", &[], b""));
    let signal = |name: &str, said: &str| {
        app.service.signal(name);
        wait_for("the signal", || app.service.output().contains(said));
    };
    let _ = get();
    signal("USR1", "verbose logging is on");
    let _ = get();
    assert_eq!(lines(&app.service, 1)[0]["status"], 200);
    signal("USR2", "verbose logging is off");
    let _ = get();
    assert_eq!(get().status, 200);
    lines(&app.service, 1);
}

#[test]
fn without_being_asked_for_there_is_no_line() {
    for filter in ["info", "debug"] {
        let mut app = TestApp::start_with(|builder| builder.setting("INTAKE_LOG", filter));
        send(&app, app.key(), &[]);
        // The end of a service is the last line of its log.
        assert!(app.service.stop().success());
        assert!(app.service.output().contains("stopped"), "{}", app.service.output());
        assert!(!app.service.output().contains("intake::requests"), "{filter}: {}", app.service.output());
    }
}
