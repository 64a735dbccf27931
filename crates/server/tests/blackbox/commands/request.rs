//! `intake request`: the reason of a refusal by the id of its request.

use intake_test_support::{free_port, patient, wait_for};
use serde_json::{Value, json};

use crate::fixtures::{TestApp, service};
use crate::patient_with;

#[test]
fn a_refused_request_is_found_by_its_id_with_its_fields_and_without_its_values() {
    let admin = free_port();
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_ADMIN_ADDR", format!("127.0.0.1:{admin}")));
    let with_id = |id: &str, patient: &Value| {
        app.service.create_with(app.key(), &[("X-Request-Id", id)], patient.to_string().as_bytes()).status
    };
    let mut wrong = patient_with("phoneNumber", "0491 570 006");
    wrong["dateOfBirth"] = json!("1985-13-01");
    assert_eq!(with_id("vendor-123", &wrong), 422);
    assert_eq!(with_id("vendor-124", &patient()), 201);
    wait_for("the refusal", || app.database.count("key_refusals WHERE request_id = 'vendor-123'") == 1);
    let run = |arguments: &[&str]| {
        arguments.iter().fold(service(&app.database).argument("request"), |all, one| all.argument(one)).run()
    };
    let text = String::from_utf8(run(&["vendor-123"]).stdout).unwrap();
    assert!(text.contains("422 invalid (") && text.contains("phoneNumber") && text.contains("dateOfBirth"), "{text}");
    assert!(!text.contains("0491") && !text.contains("1985"), "no values: {text}");
    let found: Value = serde_json::from_slice(&run(&["vendor-123", "--json"]).stdout).unwrap();
    assert_eq!((&found[0]["status"], &found[0]["reason"]), (&json!(422), &json!("invalid")));
    let instance = format!("{}:{admin}", rustix::system::uname().nodename().to_str().unwrap());
    assert_eq!(found[0]["instance"], instance);
    assert!(text.contains(&format!(", by {instance}\n")), "{text}");
    assert_eq!(found[0]["organisationId"], app.clinic.organisation.to_string());
    let none = run(&["vendor-124"]);
    assert_eq!((none.status.code(), none.stdout.len()), (Some(1), 0));
    assert!(String::from_utf8(none.stderr).unwrap().contains("no refused request with the id vendor-124 is kept"));
}

#[test]
fn requests_beyond_the_rate_are_counted_and_not_kept() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "1/1"));
    let send =
        |id: &str, body: &str| app.service.create_with(app.key(), &[("X-Request-Id", id)], body.as_bytes()).status;
    assert_eq!(send("invalid", "{}"), 422);
    wait_for("the limit", || send("beyond", "{}") == 429);
    wait_for("the counts", || app.database.count("key_answers WHERE status = 429") > 0);
    wait_for("the refusal", || app.database.count("key_refusals WHERE request_id = 'invalid'") == 1);
    assert_eq!(app.database.count("key_refusals WHERE status = 429"), 0);
}
