//! A client that sends `Expect: 100-continue` waits with its body: it is asked to send it only where the head leaves a
//! 201 possible, and otherwise has its answer at once.

use intake_test_support::{patient, request};

use crate::fixtures::TestApp;
use crate::{assert_problem, assert_unauthorised};

const EXPECT: (&str, &str) = ("Expect", "100-continue");
const JSON: (&str, &str) = ("Content-Type", "application/json");

/// The head of a request with a body of this length.
fn head(app: &TestApp, length: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let authorization = format!("Bearer {}", app.key().expose());
    let own = [("Authorization", authorization.as_str()), EXPECT, ("Content-Length", length)];
    request("POST", "/api/v1/patients", &[&own, headers].concat(), b"")
}

#[test]
fn a_body_that_may_become_a_patient_is_asked_for() {
    let app = TestApp::start();
    let body = patient().to_string();
    let mut connection = app.service.client().connect();
    for _ in 0..2 {
        assert_eq!(connection.exchange(&head(&app, &body.len().to_string(), &[JSON])).status, 100);
        assert_eq!(connection.exchange(body.as_bytes()).status, 201);
    }
    let head = String::from_utf8(head(&app, &body.len().to_string(), &[JSON])).unwrap();
    assert_eq!(connection.exchange(head.replace("/patients", "/patients/validate").as_bytes()).status, 100);
    assert_eq!(connection.exchange(body.as_bytes()).status, 200);
    assert_eq!(app.patients(), 2);
}

#[test]
fn a_request_whose_head_cannot_lead_to_a_patient_is_answered_at_once() {
    let app = TestApp::start();
    let good = String::from_utf8(head(&app, "100", &[JSON])).unwrap();
    let key = app.key().expose();
    let cases = [
        (404, good.replace("/patients", "/patient")),
        (404, good.replace("/api/v1/patients", "/nothing")),
        (405, good.replace("POST", "PUT")),
        (405, good.replace("/patients", "/openapi.json")),
        (401, good.replace("Authorization", "X-Authorization")),
        (401, good.replace(key, &key[1..])),
        (415, good.replace("application/json", "text/plain")),
        (415, good.replace("Content-Type", "Content-Encoding")),
        (413, good.replace("Content-Length: 100", "Content-Length: 70000")),
        (413, good.replace("Content-Length: 100", "Content-Length: 99999999999999999999")),
    ];
    for (status, head) in cases {
        assert_ne!(head, good);
        // Whatever comes first is read: a 100 would be taken for the answer.
        let answer = app.service.client().send(head.as_bytes());
        assert_eq!((answer.status, answer.header("connection")), (status, Some("close")), "{head}");
    }
    assert_eq!(app.service.plain_client().send(good.as_bytes()).status, 426);
}

#[test]
fn a_key_without_rate_left_is_answered_at_once() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "1/1"));
    let head = head(&app, "100", &[JSON]);
    let statuses: Vec<_> = (0..20).map(|_| app.service.client().send(&head).status).collect();
    assert_eq!(statuses.first(), Some(&100));
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[test]
fn a_length_beyond_any_number_is_too_large_and_comes_after_the_key() {
    let app = TestApp::start();
    let length = "9".repeat(100);
    let with = |headers: &[(&str, &str)]| {
        let headers = [&[("Content-Length", length.as_str()), JSON], headers].concat();
        app.service.client().send(&request("POST", "/api/v1/patients", &headers, b""))
    };
    let authorization = format!("Bearer {}", app.key().expose());
    let answer = with(&[("Authorization", &authorization)]);
    assert_problem(&answer, 413, "Content Too Large", "The body must not be larger than 64 KiB");
    assert_eq!(answer.header("connection"), Some("close"));
    assert_unauthorised(&with(&[]));
    let unknown = format!("Bearer {}", app.clinic.unknown_key().expose());
    assert_unauthorised(&with(&[("Authorization", &unknown)]));
    assert_eq!(with(&[("Authorization", &authorization), ("Transfer-Encoding", "chunked")]).status, 400);
}
