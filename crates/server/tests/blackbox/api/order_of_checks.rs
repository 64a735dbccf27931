//! The first failure answers: path and method before the key, the key before anything about the body, and so on.

use intake_test_support::{create_request, patient, request};

use crate::fixtures::TestApp;
use crate::{assert_unauthorised, fault, faults};

#[test]
fn path_and_method_come_before_the_key() {
    let app = TestApp::start();
    let client = app.service.client();
    assert_eq!(client.send(&request("POST", "/api/v1/patient", &[], b"{")).status, 404);
    assert_eq!(client.send(&request("PUT", "/api/v1/patients", &[], b"{")).status, 405);
}

#[test]
fn a_request_without_a_key_gets_401_with_any_body() {
    let app = TestApp::start();
    let (revoked_id, revoked) = app.clinic.key();
    app.clinic.revoke(revoked_id);
    let huge = vec![b' '; 70_000];
    let good = patient().to_string();
    let bodies: [&[u8]; 6] = [b"", b"{", b"[]", b"{}", &huge, good.as_bytes()];
    for key in [app.clinic.unknown_key(), revoked] {
        for body in bodies {
            assert_unauthorised(&app.service.create_with(&key, &[], body));
            assert_unauthorised(&app.service.create_with(&key, &[("Content-Type", "text/plain")], body));
            assert_unauthorised(&app.service.create_with(&key, &[("Idempotency-Key", "é")], body));
        }
    }
    assert_eq!(app.patients(), 0);
}

#[test]
fn a_malformed_key_is_refused_without_waiting_for_the_body() {
    let app = TestApp::start();
    let headers = [("Authorization", "Bearer x"), ("Content-Length", "100")];
    assert_unauthorised(&app.service.client().send(&request("POST", "/api/v1/patients", &headers, b"")));
}

#[test]
fn content_type_comes_before_size_and_size_before_json() {
    let app = TestApp::start();
    let huge = vec![b'{'; 70_000];
    assert_eq!(app.service.create_with(app.key(), &[("Content-Type", "text/plain")], &huge).status, 415);
    assert_eq!(app.service.create_with(app.key(), &[], &huge).status, 413);
    assert_eq!(app.service.create_with(app.key(), &[("Content-Type", "text/plain")], b"{").status, 415);
}

#[test]
fn the_syntax_of_the_idempotency_key_is_checked_with_the_json_and_before_the_fields() {
    let app = TestApp::start();
    let bad = [("Idempotency-Key", "a b")];
    assert_eq!(app.service.create_with(app.key(), &bad, b"{}").status, 400);
    assert_eq!(app.service.create_with(app.key(), &bad, b"[]").status, 400);
    assert_eq!(app.service.create_with(app.key(), &bad, patient().to_string().as_bytes()).status, 400);
    let json = app.service.create_with(app.key(), &bad, b"{");
    assert!(json.json()["detail"].as_str().unwrap().contains("not valid JSON"));
}

#[test]
fn fields_come_before_idempotency() {
    let app = TestApp::start();
    let headers = [("Idempotency-Key", "once")];
    assert_eq!(app.service.create_with(app.key(), &headers, patient().to_string().as_bytes()).status, 201);
    let broken = crate::patient_with("email", "x").to_string();
    assert_eq!(
        fault(&app.service.create_with(app.key(), &headers, broken.as_bytes()), "email"),
        "must be a valid email address"
    );
    let other = crate::patient_with("firstName", "Grace").to_string();
    let faults = faults(&app.service.create_with(app.key(), &headers, other.as_bytes()));
    assert_eq!(faults[0].0, ["Idempotency-Key"]);
}

#[test]
fn plain_http_comes_before_everything() {
    let app = TestApp::start();
    let client = app.service.plain_client();
    for bytes in [
        request("GET", "/nothing", &[], b""),
        request("PUT", "/api/v1/patients", &[], b""),
        request("POST", "/api/v1/patients", &[], b"{"),
        create_request(app.key(), &[], patient().to_string().as_bytes()),
    ] {
        assert_eq!(client.send(&bytes).status, 426);
    }
    assert_eq!(app.patients(), 0);
}
