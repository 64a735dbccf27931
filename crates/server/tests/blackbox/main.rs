//! Black-box tests: the real program over real HTTPS with a real PostgreSQL. One file for each promise.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests fail by panicking and say why")]

mod account;
mod activity;
mod authentication;
mod body;
mod certificates;
mod command_line;
mod compose;
mod dashboard;
mod dashboard_guard;
mod docs_page;
mod dry_run;
mod embedded_database;
mod environments;
mod erasure;
mod errors;
mod export;
mod first_run;
mod first_steps;
mod fixtures;
mod floods;
mod grants;
mod hangs;
mod held_rows;
mod idempotency;
mod install_offer;
mod invitations;
mod key_life_cycle;
mod key_page;
mod layout;
mod listeners;
mod mails;
mod metrics;
mod migrations;
mod moments;
mod nodes;
mod operations;
mod order_of_checks;
mod overload;
mod packaging;
mod pages;
mod passkeys;
mod plain_http;
mod pooler;
mod privacy;
mod proxies;
mod rate_limit;
mod readers;
mod readiness;
mod replication;
mod request_log;
mod restoring;
mod roles;
mod round_trips;
mod secrets;
mod sessions;
mod sign_in_line;
mod slow_clients;
mod spread;
mod stopping;
mod systemd;
mod torture;
mod two_step_sign_in;
mod values;
mod way_back;

use intake_test_support::{Response, ServiceBuilder};
use serde_json::{Value, json};

/// The line with which a service refuses to start.
#[track_caller]
fn complaint(builder: ServiceBuilder) -> String {
    let output = builder.run();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    let complaint = text.lines().last().unwrap().to_owned();
    assert!(complaint.starts_with("intake: "), "{text}");
    complaint
}

/// Asserts that an answer is a problem of this status, title and detail, and nothing more.
#[track_caller]
fn assert_problem(response: &Response, status: u16, title: &str, detail: &str) {
    assert_eq!(response.status, status, "{}", response.text());
    let expected =
        json!({ "type": "about:blank", "title": title, "status": status, "detail": detail, "instance": null });
    assert_eq!(response.json(), expected);
    assert_eq!(response.header("content-type"), Some("application/json"));
}

#[track_caller]
fn assert_unauthorised(response: &Response) {
    assert_problem(response, 401, "Unauthorized", "Missing or invalid API key");
}

/// The fields and messages of a validation error, whose shape is asserted on the way.
#[track_caller]
fn faults(response: &Response) -> Vec<(Vec<String>, String)> {
    assert_eq!(response.status, 422, "{}", response.text());
    let mut problem = response.json();
    let errors = problem.as_object_mut().unwrap().remove("errors").unwrap();
    let expected = json!({
        "type": "about:blank", "title": "Validation Error", "status": 422, "detail": "Validation failed", "instance": null
    });
    assert_eq!(problem, expected);
    let entry = |entry: &Value| {
        assert_eq!(entry.as_object().unwrap().len(), 2, "{entry}");
        let path = entry["path"].as_array().unwrap().iter().map(|part| part.as_str().unwrap().to_owned());
        (path.collect(), entry["message"].as_str().unwrap().to_owned())
    };
    errors.as_array().unwrap().iter().map(entry).collect()
}

/// The one fault of one field.
#[track_caller]
fn fault(response: &Response, field: &str) -> String {
    let mut faults = faults(response);
    assert_eq!(faults.len(), 1, "{faults:?}");
    let (path, message) = faults.remove(0);
    assert_eq!(path, [field]);
    message
}

/// A patient with one member more, or another value for it.
fn patient_with(member: &str, value: impl Into<Value>) -> Value {
    let mut patient = intake_test_support::patient();
    patient[member] = value.into();
    patient
}
