//! The log: nothing waits for its reader, and it says why the service ended.

use std::time::{Duration, Instant};

use intake_domain::Environment;
use intake_test_support::processes::send;
use intake_test_support::{
    Client, Clinic, TestDatabase, complaint_in, create_request, free_port, patient, request, wait_for, wait_for_end,
};
use serde_json::Value;

use crate::fixtures::program;

/// The documented time of a stop: connections, requests, last writes.
const STOP_TIME_MAX: Duration = Duration::from_secs(22);

#[test]
fn a_log_that_nobody_reads_delays_neither_requests_nor_the_end() {
    let (database, folder) = (TestDatabase::new(), tempfile::tempdir().unwrap());
    let clinic = Clinic::open(&database.service, Environment::Development);
    let key = clinic.key().1;
    let [https, admin] = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let (mut child, _unread) = program()
        .database(&database)
        .data_folder(folder.path())
        .setting("INTAKE_HTTPS_ADDR", &https)
        .setting("INTAKE_ADMIN_ADDR", &admin)
        .setting("INTAKE_HTTP_ADDR", "off")
        .setting("INTAKE_LOG", "info,intake::requests=info")
        .setting("INTAKE_RATE_LIMIT", "off")
        .spawn_unread();
    let probe = |path: &str| {
        let request = request("GET", path, &[], b"");
        let mut connection = Client::plain(admin.parse().unwrap()).try_connect().ok()?;
        let answer = connection.exchange(&request);
        Some((answer.status, answer.text()))
    };
    wait_for("readiness", || probe("/readyz").is_some_and(|(status, _)| status == 200));
    let client = Client::tls(https.parse().unwrap(), &folder.path().join("tls/ca.pem"));
    let mut connection = client.connect();
    // A line for each, more than the queue holds.
    let create = create_request(&key, &[], patient().to_string().as_bytes());
    let is_dropping = || {
        let (_, metrics) = probe("/metrics").unwrap();
        !metrics.contains("intake_log_lines_dropped_total 0\n")
    };
    for count in 0.. {
        assert_eq!(connection.exchange(&create).status, 201);
        if count % 500 == 499 && is_dropping() {
            break;
        }
    }
    assert_eq!(probe("/readyz").unwrap().0, 200);
    assert_eq!(probe("/livez").unwrap().0, 200);
    drop(connection);
    let asked = Instant::now();
    send("TERM", &child.id().to_string());
    assert_eq!(wait_for_end(&mut child).code(), Some(0));
    assert!(asked.elapsed() < STOP_TIME_MAX, "{:?}", asked.elapsed());
}

#[cfg(not(feature = "otlp"))]
#[test]
fn a_collector_of_traces_that_will_get_none_is_warned_of() {
    let database = TestDatabase::new();
    for (endpoint, is_warned) in [("http://127.0.0.1:4318", true), ("", false)] {
        let service = program().database(&database).setting("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).start();
        let is_there = service.output().contains("this program is built without the feature otlp");
        assert_eq!(is_there, is_warned, "{}", service.output());
    }
}

#[test]
fn a_service_that_cannot_start_ends_although_nobody_reads_why() {
    let (mut child, _unread) = program().setting("INTAKE_DEADLINE", "soon").spawn_unread();
    assert_eq!(wait_for_end(&mut child).code(), Some(1));
}

#[test]
fn the_log_says_why_a_service_ended_despite_any_filter() {
    for log in ["info", "off", "nonsense=very"] {
        let output = program().setting("INTAKE_DEADLINE", "soon").setting("INTAKE_LOG", log).run();
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8(output.stderr.clone()).unwrap();
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&line["level"], line["timestamp"].is_string()), (&Value::from("ERROR"), true), "{text}");
        assert!(complaint_in(&output.stderr).starts_with("intake: INTAKE_"), "{text}");
    }
}
