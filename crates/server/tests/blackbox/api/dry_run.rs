//! The dry run says what a create would say, and stores nothing; strict mode refuses unknown members on both routes.

use intake_domain::ApiKey;
use intake_test_support::{Response, patient, request, wait_for};
use serde_json::json;

use crate::fixtures::TestApp;
use crate::{assert_problem, assert_unauthorised, fault, faults, patient_with};

const CREATE: &str = "/api/v1/patients";
const VALIDATE: &str = "/api/v1/patients/validate";
const STRICT: (&str, &str) = ("Prefer", "handling=strict");

fn send(app: &TestApp, path: &str, key: &ApiKey, headers: &[(&str, &str)], body: &[u8]) -> Response {
    let authorization = format!("Bearer {}", key.expose());
    let mut all = vec![("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
    all.retain(|(name, _)| headers.iter().all(|(other, _)| other != name));
    all.extend(headers);
    app.service.client().send(&request("POST", path, &all, body))
}

#[test]
fn a_valid_patient_is_said_to_be_valid_and_not_stored() {
    let app = TestApp::start();
    let body = patient().to_string();
    for _ in 0..2 {
        let response = send(&app, VALIDATE, app.key(), &[("Idempotency-Key", "once")], body.as_bytes());
        assert_eq!((response.status, response.text()), (200, r#"{"data":null,"meta":{}}"#.to_owned()));
        assert_eq!(response.header("content-type"), Some("application/json"));
        assert!(response.header("ratelimit").unwrap().contains(";r=99"));
        assert_eq!(response.header("idempotent-replayed"), None);
    }
    assert_eq!(app.patients(), 0);
    // The idempotency key is still free, for another patient too.
    let other = patient_with("firstName", "Grace").to_string();
    assert_eq!(send(&app, CREATE, app.key(), &[("Idempotency-Key", "once")], other.as_bytes()).status, 201);
    // A dry run does not look at what is stored under it.
    assert_eq!(send(&app, VALIDATE, app.key(), &[("Idempotency-Key", "once")], body.as_bytes()).status, 200);
}

/// Request with its key and headers, and the status that refuses it.
type Refused<'a> = (&'a ApiKey, &'a [(&'a str, &'a str)], &'a [u8], u16);

#[test]
fn a_dry_run_refuses_everything_that_a_create_refuses() {
    let app = TestApp::start();
    let (revoked_id, revoked) = app.clinic.key();
    app.clinic.revoke(revoked_id);
    let good = patient().to_string();
    let huge = vec![b' '; 70_000];
    let broken = patient_with("phoneNumber", "0412").to_string();
    let cases: [Refused<'_>; 9] = [
        (&app.clinic.unknown_key(), &[], good.as_bytes(), 401),
        (&revoked, &[], b"{", 401),
        (app.key(), &[("Content-Type", "text/plain")], good.as_bytes(), 415),
        (app.key(), &[], &huge, 413),
        (app.key(), &[], b"{", 400),
        (app.key(), &[("Idempotency-Key", "a b")], good.as_bytes(), 400),
        (app.key(), &[], b"[]", 422),
        (app.key(), &[], b"{}", 422),
        (app.key(), &[], broken.as_bytes(), 422),
    ];
    for (key, headers, body, status) in cases {
        let [created, checked] = [CREATE, VALIDATE].map(|path| send(&app, path, key, headers, body));
        assert_eq!((created.status, checked.status), (status, status));
        assert_eq!(created.json(), checked.json());
        assert_eq!(created.header("www-authenticate"), checked.header("www-authenticate"));
    }
    assert_unauthorised(&app.service.client().send(&request("POST", VALIDATE, &[], good.as_bytes())));
    let wrong_method = app.service.client().send(&request("GET", VALIDATE, &[], b""));
    assert_eq!((wrong_method.status, wrong_method.header("allow")), (405, Some("POST, OPTIONS")));
    assert_eq!(app.patients(), 0);
}

#[test]
fn both_routes_share_the_rate_of_a_key() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "1/2"));
    let body = patient().to_string();
    // A token comes back each second: on a busy machine it may take a few tries to be faster.
    wait_for("a refusal of the third", || {
        let (_, key) = app.clinic.key();
        assert_eq!(send(&app, VALIDATE, &key, &[], body.as_bytes()).status, 200);
        assert_eq!(send(&app, CREATE, &key, &[], body.as_bytes()).status, 201);
        send(&app, VALIDATE, &key, &[], body.as_bytes()).status == 429
    });
}

#[test]
fn strict_mode_names_each_unknown_member_after_the_faults_of_fields() {
    let app = TestApp::start();
    let body = br#"{"nickname":1,"emial":"ada@example.com","firstName":"","lastName":"L","phoneNumber":"+61412345678","dateOfBirth":"1985-03-21"}"#;
    for path in [CREATE, VALIDATE] {
        let response = send(&app, path, app.key(), &[STRICT], body);
        assert_eq!(response.header("preference-applied"), Some("handling=strict"));
        let expected = [
            ("firstName", "must be 1 to 255 characters long"),
            ("nickname", "is not a field of a patient"),
            ("emial", "is not a field of a patient: did you mean email?"),
        ];
        let expected = expected.map(|(name, message)| (vec![name.to_owned()], message.to_owned()));
        assert_eq!(faults(&response), expected);
    }
    assert_eq!(app.patients(), 0);
}

#[test]
fn strict_mode_refuses_what_is_valid_but_for_unknown_members() {
    let app = TestApp::start();
    let unknown = patient_with("organisationId", "x").to_string();
    for path in [CREATE, VALIDATE] {
        assert_eq!(
            fault(&send(&app, path, app.key(), &[STRICT], unknown.as_bytes()), "organisationId"),
            "is not a field of a patient"
        );
        assert_unauthorised(&send(&app, path, &app.clinic.unknown_key(), &[STRICT], unknown.as_bytes()));
        let twice = send(&app, path, app.key(), &[STRICT], br#"{"x":1,"x":1}"#);
        assert_problem(&twice, 400, "Bad Request", "The body contains the property \"x\" twice");
        assert_eq!(twice.header("preference-applied"), None, "nothing was judged");
    }
    let lenient = send(&app, CREATE, app.key(), &[("Prefer", "handling=lenient, handling=strict")], unknown.as_bytes());
    assert_eq!((lenient.status, lenient.header("preference-applied")), (201, None));
    let known = json!(patient()).to_string();
    let strict = send(&app, CREATE, app.key(), &[STRICT], known.as_bytes());
    assert_eq!((strict.status, strict.header("preference-applied")), (201, Some("handling=strict")));
    assert_eq!(app.patients(), 2);
}

#[test]
fn strict_mode_knows_the_names_of_other_software_and_wrappers() {
    let app = TestApp::start();
    let body = br#"{"patient":{"firstName":"Canary"},"mobile":"Canary","dob":"Canary","city":"Canary","data":1}"#;
    let response = send(&app, VALIDATE, app.key(), &[STRICT], body);
    let expected = [
        ("firstName", "is required"),
        ("lastName", "is required"),
        ("phoneNumber", "is required"),
        ("dateOfBirth", "is required"),
        ("patient", "is not a field of a patient: send the fields in it without it"),
        ("mobile", "is not a field of a patient: did you mean phoneNumber?"),
        ("dob", "is not a field of a patient: did you mean dateOfBirth?"),
        ("city", "is not a field of a patient: did you mean suburb?"),
        ("data", "is not a field of a patient"),
    ];
    let expected = expected.map(|(name, message)| (vec![name.to_owned()], message.to_owned()));
    assert_eq!(faults(&response), expected);
}

#[test]
fn a_missing_field_is_recognised_under_another_name() {
    let app = TestApp::start();
    let body = br#"{"patient":{"firstName":"Canary"},"mobile":"Canary","email":""}"#;
    for path in [CREATE, VALIDATE] {
        let response = send(&app, path, app.key(), &[], body);
        let expected = [
            ("firstName", "is required: take it out of \"patient\""),
            ("lastName", "is required"),
            ("phoneNumber", "is required: send \"mobile\" under this name"),
            ("dateOfBirth", "is required"),
            ("email", "must not be blank: leave the field out, or send null"),
        ];
        let expected = expected.map(|(name, message)| (vec![name.to_owned()], message.to_owned()));
        assert_eq!(faults(&response), expected);
        let body = br#"{"name":"Canary","phoneNumber":"+61491570006","dateOfBirth":"1985-12-10"}"#;
        let hint = "is required: split \"name\" into firstName and lastName";
        let expected = ["firstName", "lastName"].map(|name| (vec![name.to_owned()], hint.to_owned()));
        assert_eq!(faults(&send(&app, path, app.key(), &[], body)), expected);
    }
    assert_eq!(app.patients(), 0);
}

#[test]
fn thousands_of_unknown_members_are_answered_in_time() {
    let app = TestApp::start();
    let members: Vec<_> = (0..6_000).map(|number| format!("\"m{number}\":1")).collect();
    let before = app.service.processor_time();
    let response = send(&app, VALIDATE, app.key(), &[STRICT], format!("{{{}}}", members.join(",")).as_bytes());
    let computed = app.service.processor_time() - before;
    // Four required fields are missing besides.
    assert_eq!(faults(&response).len(), 6_004);
    assert!(computed < std::time::Duration::from_secs(5), "{computed:?}");
}

#[test]
fn the_openapi_document_is_served_to_everybody_and_asked_for_again_cheaply() {
    let app = TestApp::start();
    let client = app.service.client();
    let path = "/api/v1/openapi.json";
    let served = client.send(&request("GET", path, &[("Origin", "https://editor.example")], b""));
    assert_eq!((served.status, served.header("content-type")), (200, Some("application/json")));
    assert_eq!(served.header("cache-control"), Some("no-cache"));
    assert_eq!(served.header("access-control-allow-origin"), Some("*"));
    let mut document = served.json();
    assert_eq!(document["servers"][0]["url"], app.url("/api/v1"));

    let printed = crate::fixtures::program().argument("openapi").run();
    let mut printed: serde_json::Value = serde_json::from_slice(&printed.stdout).unwrap();
    for document in [&mut document, &mut printed] {
        document["servers"] = json!(null);
        document["externalDocs"] = json!(null);
        document["info"]["contact"] = json!(null);
    }
    assert_eq!(document, printed);

    let tag = served.header("etag").unwrap();
    let again = client.send(&request("GET", path, &[("If-None-Match", tag)], b""));
    assert_eq!((again.status, again.text(), again.header("etag")), (304, String::new(), Some(tag)));
    assert_eq!(client.send(&request("GET", path, &[("If-None-Match", "\"other\"")], b"")).status, 200);
    let mut connection = client.connect();
    connection.write(&request("HEAD", path, &[], b""));
    let head = connection.read_head();
    assert_eq!((head.status, head.header("etag")), (200, Some(tag)));
    assert_eq!(connection.exchange(&request("GET", path, &[], b"")).status, 200, "no body was between");
    for method in ["POST", "DELETE"] {
        let response = client.send(&request(method, path, &[], b""));
        assert_eq!((response.status, response.header("allow")), (405, Some("GET, HEAD, OPTIONS")), "{method}");
    }
    let other = client.send(&request("POST", CREATE, &[("Origin", "https://editor.example")], b""));
    assert_eq!(other.header("access-control-allow-origin"), None, "the document alone may be read from other pages");
}
