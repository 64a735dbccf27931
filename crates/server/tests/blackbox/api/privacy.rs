//! No value of a patient and no key reaches a log or an error, and the service's own role cannot read a patient back.

use diesel::Connection;
use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use intake_test_support::{TestDatabase, patient, request};
use serde_json::{Value, json};

use crate::api::values::fields;
use crate::fixtures::{TestApp, demo_key, program};
use crate::patient_with;

const CANARY: &str = "Canary-Bird";

#[test]
fn no_log_and_no_error_contains_what_was_sent() {
    let service = program().setting("INTAKE_LOG", "trace,intake::requests=trace").start();
    let key = demo_key(&std::fs::read_to_string(service.data_dir().join("demo-key")).unwrap());
    let mut refusals = Vec::new();
    for field in fields() {
        for value in [json!(format!("{CANARY}\u{0}")), json!([CANARY]), json!(CANARY.repeat(40))] {
            refusals.push(service.create(&key, &patient_with(field, value)));
        }
    }
    for body in [format!("{{\"firstName\":\"{CANARY}\""), CANARY.to_owned()] {
        refusals.push(service.create_with(&key, &[], body.as_bytes()));
    }
    refusals.push(service.create_with(&key, &[("Idempotency-Key", &format!("{CANARY} x"))], b"{}"));
    for refusal in &refusals {
        assert!(refusal.status == 422 || refusal.status == 400, "{}", refusal.text());
        assert!(!refusal.text().contains(CANARY), "{}", refusal.text());
    }
    let mut whole: Value = patient();
    for field in ["firstName", "lastName", "addressLine1", "addressLine2", "suburb", "state"] {
        whole[field] = json!(CANARY);
    }
    assert_eq!(service.create(&key, &whole).status, 201);
    let paths = ["/invitations/Canary-Bird", "/reset-password/Canary-Bird", "/Canary-Bird?Canary-Bird"];
    for (method, path) in paths.map(|path| ("GET", path)).into_iter().chain([("CANARY-BIRD", "/sign-in")]) {
        let header = [("traceparent", "00-Canary-Bird-00f067aa0ba902b7-01")];
        let _ = service.client().send(&request(method, path, &header, b""));
    }
    assert!(service.output().contains("\"route\":\"/api/v1/patients\""), "every request has a line");
    assert!(service.output().contains("a batch was sent"), "{}", service.output());

    let database_log = std::fs::read_to_string(service.data_dir().join("postgres/postgres.log")).unwrap();
    for text in [service.output(), database_log] {
        assert!(!text.contains(CANARY) && !text.contains("CANARY-BIRD"), "{text}");
        assert!(!text.contains(&key.expose()[12..]), "{text}");
    }
}

#[test]
fn a_database_error_is_logged_without_the_row() {
    let app = TestApp::start();
    let forbid = "ALTER TABLE patients ADD CONSTRAINT forbidden CHECK (last_name NOT LIKE 'Canary%')";
    app.database.connect().batch_execute(forbid).unwrap();
    assert_eq!(app.create(&patient_with("lastName", CANARY)).status, 500);
    let database_log = std::fs::read_to_string(app.database.socket_folder().join("../postgres.log")).unwrap();
    for text in [app.service.output(), database_log] {
        assert!(!text.contains(CANARY), "{text}");
    }
}

/// Else the tests that look for secrets in the database could not fail.
#[test]
fn a_secret_in_the_database_is_seen_as_text_and_as_bytes() {
    let database = TestDatabase::new();
    let tables = "CREATE TABLE as_text (kept text); INSERT INTO as_text VALUES ('before Canary after');
        CREATE TABLE as_bytes (kept bytea); INSERT INTO as_bytes VALUES ('before Canary after');
        CREATE TABLE as_digest (kept bytea); INSERT INTO as_digest VALUES (sha256('Canary'))";
    database.connect().batch_execute(tables).unwrap();
    assert_eq!(database.tables_that_hold("Canary"), ["as_bytes", "as_text"]);
}

#[test]
fn the_services_role_cannot_read_a_patient() {
    let database = TestDatabase::new();
    let mut connection = PgConnection::establish(database.service.expose()).unwrap();
    let allowed = ["organisation_id", "id", "idempotency_key", "request_digest", "created_at", "updated_at"];
    let columns =
        database.texts("SELECT attname::text FROM pg_attribute WHERE attrelid = 'patients'::regclass AND attnum > 0");
    assert!(columns.len() >= allowed.len() + fields().len(), "{columns:?}");
    let described = columns.iter().map(String::as_str).filter(|column| !allowed.contains(column));
    for column in described.chain(["*"]) {
        let refused = connection.batch_execute(&format!("SELECT {column} FROM patients"));
        assert!(refused.unwrap_err().to_string().contains("permission denied"), "{column}");
    }
    for column in allowed {
        connection.batch_execute(&format!("SELECT {column} FROM patients")).unwrap();
    }
    for forbidden in [
        "UPDATE patients SET updated_at = now()",
        "DELETE FROM patients",
        "TRUNCATE patients",
        "DELETE FROM api_keys",
        "UPDATE api_keys SET revoked_at = NULL, digest = ''",
        "UPDATE organisations SET id = gen_random_uuid()",
        "DELETE FROM organisations",
        "CREATE TABLE mine (id int)",
        "DROP TABLE patients",
    ] {
        assert!(connection.batch_execute(forbidden).is_err(), "{forbidden}");
    }
}
