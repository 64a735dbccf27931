//! Safe retry: the same key with the same patient is the same creation, at any time, from any client, however often.

use intake_test_support::{Response, create_request, patient};
use serde_json::{Value, json};

use crate::fixtures::{TestApp, service};
use crate::{fault, patient_with};

fn send(app: &TestApp, idempotency_key: &str, patient: &Value) -> Response {
    app.service.create_with(app.key(), &[("Idempotency-Key", idempotency_key)], patient.to_string().as_bytes())
}

#[test]
fn a_repeated_request_gets_the_first_answer_byte_for_byte() {
    let app = TestApp::start();
    let first = send(&app, "order-7", &patient());
    assert_eq!((first.status, first.header("idempotent-replayed")), (201, None));
    for _ in 0..3 {
        let again = send(&app, "order-7", &patient());
        assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
        assert_eq!(again.body, first.body);
    }
    assert_eq!(app.patients(), 1);
}

#[test]
fn null_nothing_and_another_order_are_the_same_patient() {
    let app = TestApp::start();
    let first = send(&app, "k", &patient());
    let same = br#"{"unknown":1,"email":null,"dateOfBirth":"1985-03-21","phoneNumber":"\u002b61412345678","lastName":"Lovelace","firstName":"Ada"}"#;
    let again = app.service.create_with(app.key(), &[("Idempotency-Key", "k")], same);
    assert_eq!(again.body, first.body);
}

#[test]
fn another_patient_under_the_same_key_is_refused() {
    let app = TestApp::start();
    assert_eq!(send(&app, "k", &patient()).status, 201);
    for other in [patient_with("firstName", "ada"), patient_with("suburb", ""), patient_with("email", "a@b.co")] {
        let message = fault(&send(&app, "k", &other), "Idempotency-Key");
        assert!(message.contains("different patient"), "{message}");
    }
    assert_eq!(app.patients(), 1);
}

#[test]
fn only_a_created_patient_is_remembered() {
    let app = TestApp::start();
    assert_eq!(send(&app, "k", &patient_with("email", "x")).status, 422);
    assert_eq!(send(&app, "k", &patient()).status, 201);
}

#[test]
fn the_key_is_one_to_255_visible_characters_sent_once() {
    let app = TestApp::start();
    let longest = "k".repeat(255);
    for key in ["k", "!~", longest.as_str()] {
        assert_eq!(send(&app, key, &patient()).status, 201, "{key}");
    }
    for key in ["", "a b", "é", "a\tb", &"k".repeat(256)] {
        let response = send(&app, key, &patient());
        let detail = "The header Idempotency-Key must be 1 to 255 visible ASCII characters";
        crate::assert_problem(&response, 400, "Bad Request", detail);
    }
    let twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "a")];
    let response = app.service.create_with(app.key(), &twice, patient().to_string().as_bytes());
    crate::assert_problem(&response, 400, "Bad Request", "The header Idempotency-Key must be sent once");
}

#[test]
fn organisations_do_not_share_keys() {
    let app = TestApp::start();
    let other = app.other_clinic();
    let first = send(&app, "k", &patient()).json();
    let headers = [("Idempotency-Key", "k")];
    let second =
        app.service.create_with(&other.key().1, &headers, patient_with("firstName", "Eve").to_string().as_bytes());
    assert_eq!(second.status, 201);
    assert_ne!(second.json()["data"]["id"], first["data"]["id"]);
}

#[test]
fn the_answer_outlives_the_service_and_the_api_key() {
    let mut app = TestApp::start();
    let first = send(&app, "k", &patient());
    assert!(app.service.stop().success());
    let (_, rotated) = app.clinic.key();
    let restarted = service(&app.database).start();
    let again = restarted.create_with(&rotated, &[("Idempotency-Key", "k")], patient().to_string().as_bytes());
    assert_eq!((again.header("idempotent-replayed"), &again.body), (Some("true"), &first.body));
}

#[test]
fn racing_requests_on_two_instances_create_one_patient() {
    let app = TestApp::start();
    let second = service(&app.database).start();
    let bytes = create_request(app.key(), &[("Idempotency-Key", "race")], patient().to_string().as_bytes());
    let answers: Vec<Response> = std::thread::scope(|scope| {
        let race = (0..64).map(|number| {
            let client = if number % 2 == 0 { app.service.client() } else { second.client() };
            let bytes = &bytes;
            scope.spawn(move || client.send(bytes))
        });
        race.collect::<Vec<_>>().into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| answer.status == 201 && answer.body == answers[0].body));
    let replayed = answers.iter().filter(|answer| answer.header("idempotent-replayed").is_some()).count();
    assert_eq!((replayed, app.patients()), (63, 1));
    assert_eq!(answers[0].json()["meta"], json!({}));
}
