//! The first failure answers: path and method before the key, the key before anything about the body, and so on.

use intake_test_support::{create_request, patient, request};

use crate::{Door, assert_unauthorised, fault, faults};

#[test]
fn path_and_method_come_before_the_key() {
    let door = Door::open();
    let client = door.service.client();
    assert_eq!(client.send(&request("POST", "/api/v1/patient", &[], b"{")).status, 404);
    assert_eq!(client.send(&request("PUT", "/api/v1/patients", &[], b"{")).status, 405);
}

#[test]
fn a_stranger_is_told_401_whatever_the_body_looks_like() {
    let door = Door::open();
    let (revoked_id, revoked) = door.clinic.key();
    door.clinic.revoke(revoked_id);
    let huge = vec![b' '; 70_000];
    let good = patient().to_string();
    let bodies: [&[u8]; 6] = [b"", b"{", b"[]", b"{}", &huge, good.as_bytes()];
    for key in [door.clinic.unknown_key(), revoked] {
        for body in bodies {
            assert_unauthorised(&door.service.create_with(&key, &[], body));
            assert_unauthorised(&door.service.create_with(&key, &[("Content-Type", "text/plain")], body));
            assert_unauthorised(&door.service.create_with(&key, &[("Idempotency-Key", "é")], body));
        }
    }
    assert_eq!(door.patients(), 0);
}

#[test]
fn a_malformed_key_is_refused_without_waiting_for_the_body() {
    let door = Door::open();
    let headers = [("Authorization", "Bearer x"), ("Content-Length", "100")];
    assert_unauthorised(&door.service.client().send(&request("POST", "/api/v1/patients", &headers, b"")));
}

#[test]
fn content_type_comes_before_size_and_size_before_json() {
    let door = Door::open();
    let huge = vec![b'{'; 70_000];
    assert_eq!(door.service.create_with(&door.key, &[("Content-Type", "text/plain")], &huge).status, 415);
    assert_eq!(door.service.create_with(&door.key, &[], &huge).status, 413);
    assert_eq!(door.service.create_with(&door.key, &[("Content-Type", "text/plain")], b"{").status, 415);
}

#[test]
fn the_syntax_of_the_idempotency_key_is_checked_with_the_json_and_before_the_fields() {
    let door = Door::open();
    let bad = [("Idempotency-Key", "a b")];
    assert_eq!(door.service.create_with(&door.key, &bad, b"{}").status, 400);
    assert_eq!(door.service.create_with(&door.key, &bad, b"[]").status, 400);
    assert_eq!(door.service.create_with(&door.key, &bad, patient().to_string().as_bytes()).status, 400);
    let json = door.service.create_with(&door.key, &bad, b"{");
    assert!(json.json()["detail"].as_str().unwrap().contains("not valid JSON"));
}

#[test]
fn fields_come_before_idempotency() {
    let door = Door::open();
    let headers = [("Idempotency-Key", "once")];
    assert_eq!(door.service.create_with(&door.key, &headers, patient().to_string().as_bytes()).status, 201);
    let broken = crate::patient_with("email", "x").to_string();
    assert_eq!(
        fault(&door.service.create_with(&door.key, &headers, broken.as_bytes()), "email"),
        "must be a valid email address"
    );
    let other = crate::patient_with("firstName", "Grace").to_string();
    let faults = faults(&door.service.create_with(&door.key, &headers, other.as_bytes()));
    assert_eq!(faults[0].0, ["Idempotency-Key"]);
}

#[test]
fn plain_http_comes_before_everything() {
    let door = Door::open();
    let client = door.service.plain_client();
    for bytes in [
        request("GET", "/nothing", &[], b""),
        request("PUT", "/api/v1/patients", &[], b""),
        request("POST", "/api/v1/patients", &[], b"{"),
        create_request(&door.key, &[], patient().to_string().as_bytes()),
    ] {
        assert_eq!(client.send(&bytes).status, 426);
    }
    assert_eq!(door.patients(), 0);
}
