//! Black-box tests: the real program over real HTTPS with a real PostgreSQL. One folder for each
//! subject, one file for each promise.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests fail by panicking and say why")]

mod accounts;
mod api;
mod commands;
mod dashboard;
mod database;
mod deployment;
mod fixtures;
mod load;
mod service;

use intake_test_support::{Response, ServiceBuilder, complaint_in};
use serde_json::{Value, json};

/// The line with which a service refuses to start.
#[track_caller]
fn complaint(builder: ServiceBuilder) -> String {
    let output = builder.run();
    assert_eq!(output.status.code(), Some(1));
    let complaint = complaint_in(&output.stderr);
    assert!(complaint.starts_with("intake: "), "{}", String::from_utf8_lossy(&output.stderr));
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
