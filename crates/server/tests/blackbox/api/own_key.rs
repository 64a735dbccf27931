//! What a key learns about itself: what it is and which of its requests were refused, after the same checks as for a
//! patient that it creates, and never a value of a patient or anything of another key.

use intake_domain::ApiKey;
use intake_edge as edge;
use intake_test_support::{Response, Service, patient, request, wait_for};
use serde_json::{Value, json};
use time::Duration;

use crate::commands::organisations::done;
use crate::fixtures::{TestApp, in_production, service};
use crate::{assert_problem, assert_unauthorised, patient_with};

const KEY: &str = "/api/v1/key";
const REFUSALS: &str = "/api/v1/key/refusals";
const PATHS: [&str; 4] = [KEY, REFUSALS, "/api/v1/key/days/2025-12-03", "/api/v1/key/quality"];

pub(crate) fn get(service: &Service, key: &ApiKey, path: &str) -> Response {
    service.client().send(&request("GET", path, &[("Authorization", &format!("Bearer {}", key.expose()))], b""))
}

#[test]
fn a_key_learns_what_it_is() {
    let app = TestApp::start();
    let (id, key) = app.clinic.key_until(Some(edge::now() + Duration::HOUR));
    let answer = get(&app.service, &key, KEY);
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")), "{}", answer.text());
    assert!(answer.header("ratelimit").is_some() && answer.header("ratelimit-policy").is_some());
    let stored = app.database.texts(
        "SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')
        || ' ' || to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') FROM api_keys",
    );
    let (created, expires) = stored[0].split_once(' ').unwrap();
    let hint = &key.expose()[key.expose().len() - 4..];
    let expected = json!({
        "id": id.to_string(), "name": "Test key", "hint": hint, "organisationId": app.clinic.organisation.to_string(),
        "organisationName": "Test Clinic", "environment": "development", "createdAt": created, "expiresAt": expires,
        "allowedNetworks": [], "rateLimit": { "perSecond": 100, "burst": 1000 },
    });
    assert_eq!(answer.json(), json!({ "data": expected, "meta": {} }));
    // The counts of a refused request are stored with those of the earlier ones.
    assert_eq!(app.service.create(&key, &patient_with("country", "XX")).status, 422);
    wait_for("the counts", || app.database.count("key_answers") > 0);
    assert_eq!(app.database.count("key_answers WHERE status = 200"), 0, "a question is no use");
    assert_eq!(app.database.count("key_uses WHERE last_used_at IS NOT NULL"), 0);

    done(&app, &["key", "networks", &id.to_string(), "--allow", "127.0.0.0/8,::1"]);
    let networks = &get(&app.service, &key, KEY).json()["data"]["allowedNetworks"];
    assert_eq!(*networks, json!(["127.0.0.0/8", "::1"]));
}

#[test]
fn a_key_without_an_end_or_a_rate_says_so_in_production_too() {
    let database = intake_test_support::TestDatabase::durable();
    let service = in_production(service(&database)).setting("INTAKE_RATE_LIMIT", "off").start();
    let clinic = intake_test_support::Clinic::open(&database.service, intake_domain::Environment::Production);
    let bearer = format!("Bearer {}", clinic.key().1.expose());
    let headers = [("Authorization", bearer.as_str()), ("X-Forwarded-Proto", "https")];
    let answer = service.plain_client().send(&request("GET", KEY, &headers, b""));
    let data = &answer.json()["data"];
    assert_eq!(
        (&data["environment"], &data["expiresAt"], &data["rateLimit"]),
        (&json!("production"), &Value::Null, &Value::Null)
    );
    assert_eq!(answer.header("ratelimit"), None);
    assert_eq!(service.plain_client().send(&request("GET", KEY, &headers[..1], b"")).status, 426);
}

#[test]
fn refusals_name_fields_and_reasons_of_this_key_alone_and_no_value() {
    let app = TestApp::start();
    let (_, key) = app.clinic.key();
    let other = app.other_clinic().key().1;
    assert_eq!(get(&app.service, &key, REFUSALS).json(), json!({ "data": [], "meta": {} }));
    let send = |key: &ApiKey, id: &str, retry: &str, body: Value| {
        let headers = [("X-Request-Id", id), ("Idempotency-Key", retry)];
        app.service.create_with(key, &headers, body.to_string().as_bytes()).status
    };
    let mut wrong = patient_with("email", "Canary");
    wrong["country"] = "Canary".into();
    assert_eq!(send(&key, "wrong", "1", wrong), 422);
    assert_eq!(send(&key, "ordered", "simulate-503-1", patient()), 503);
    assert_eq!(send(&key, "used", "2", patient()), 201);
    assert_eq!(send(&key, "different", "2", patient_with("lastName", "Canary")), 422);
    assert_eq!(send(&other, "other", "3", patient_with("email", "Canary")), 422);
    wait_for("the refusals", || app.database.count("key_refusals") == 4);
    let listed = get(&app.service, &key, REFUSALS);
    assert!(!listed.text().contains("Canary"), "{}", listed.text());
    let mut listed = listed.json()["data"].take();
    for refusal in listed.as_array_mut().unwrap() {
        let at = refusal.as_object_mut().unwrap().remove("at").unwrap();
        assert!(at.as_str().is_some_and(|at| at.len() == 24 && at.ends_with('Z')), "{at}");
    }
    let refusal = |id: &str, status: u16, reason: &str, fields: &[&str]| json!({ "requestId": id, "status": status, "reason": reason, "fields": fields, "simulated": id == "ordered" });
    let expected = [
        refusal("different", 422, "different-patient", &["Idempotency-Key"]),
        refusal("ordered", 503, "full", &[]),
        refusal("wrong", 422, "invalid", &["email", "country"]),
    ];
    assert_eq!(listed, json!(expected));
    let of_other = get(&app.service, &other, REFUSALS).json();
    assert_eq!((of_other["data"].as_array().unwrap().len(), &of_other["data"][0]["requestId"]), (1, &json!("other")));
}

#[test]
fn a_key_that_creates_nothing_learns_nothing() {
    let app = TestApp::start();
    let (revoked_id, revoked) = app.clinic.key();
    app.clinic.revoke(revoked_id);
    let (paused_id, paused) = app.clinic.key();
    done(&app, &["key", "pause", &paused_id.to_string()]);
    let (elsewhere_id, elsewhere) = app.clinic.key();
    done(&app, &["key", "networks", &elsewhere_id.to_string(), "--allow", "203.0.113.0/24"]);
    let (_, expired) = app.clinic.key_until(Some(edge::now() + Duration::SECOND));
    let suspended_clinic = app.other_clinic();
    let (_, suspended) = suspended_clinic.key();
    done(&app, &["organisation", "suspend", &suspended_clinic.organisation.to_string()]);
    wait_for("the end of a key", || app.service.create(&expired, &patient()).status == 401);
    let keys = [
        (revoked, "The API key was revoked"),
        (paused, "The API key is paused"),
        (elsewhere, "The API key is not allowed from this address"),
        (expired, "The API key has expired"),
        (suspended, "The organisation is suspended"),
        (app.clinic.unknown_key(), "The API key is unknown"),
    ];
    for path in PATHS {
        for (key, reason) in &keys {
            let refused = get(&app.service, key, path);
            assert_unauthorised(&refused);
            let challenge = refused.header("www-authenticate").unwrap();
            assert!(challenge.ends_with(&format!("error_description=\"{reason}\"")), "{challenge}");
        }
        assert_unauthorised(&app.service.client().send(&request("GET", path, &[], b"")));
    }
    wait_for("the refusals", || app.database.count("key_refusals WHERE reason = 'paused'") == 4);
}

#[test]
fn a_question_takes_from_the_rate_of_the_key() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "1/2"));
    // A token comes back each second: on a busy machine it may take a few tries to be faster.
    wait_for("a refusal of the third and the fourth", || {
        let (_, key) = app.clinic.key();
        assert_eq!([(); 2].map(|()| get(&app.service, &key, KEY).status), [200, 200]);
        let limited = get(&app.service, &key, REFUSALS);
        let created = app.service.create(&key, &patient());
        if (limited.status, created.status) == (429, 429) {
            assert_problem(&limited, 429, "Too Many Requests", "The API key's rate limit is exceeded");
        }
        (limited.status, created.status) == (429, 429)
    });
    wait_for("a refusal of a revoked key's third", || {
        let (id, revoked) = app.clinic.key();
        app.clinic.revoke(id);
        [(); 3].map(|()| get(&app.service, &revoked, KEY).status) == [401, 401, 429]
    });
}

#[test]
fn head_has_no_body_and_other_methods_are_refused_before_the_key() {
    let app = TestApp::start();
    let bearer = format!("Bearer {}", app.key().expose());
    for path in PATHS {
        let mut connection = app.service.client().connect();
        connection.write(&request("HEAD", path, &[("Authorization", &bearer)], b""));
        let head = connection.read_head();
        let whole = connection.exchange(&request("GET", path, &[("Authorization", &bearer)], b""));
        assert_eq!((head.status, whole.status), (200, 200));
        assert_eq!(head.header("content-length"), whole.header("content-length"));
        for method in ["POST", "PUT", "DELETE"] {
            let refused = app.service.client().send(&request(method, path, &[], b"{"));
            assert_problem(&refused, 405, "Method Not Allowed", "This path accepts only GET and HEAD requests");
            assert_eq!(refused.header("allow"), Some("GET, HEAD, OPTIONS"));
        }
        let options = app.service.client().send(&request("OPTIONS", path, &[], b""));
        assert_eq!((options.status, options.header("allow")), (204, Some("GET, HEAD, OPTIONS")));
        let slash = app.service.client().send(&request("GET", &format!("{path}/"), &[("Authorization", &bearer)], b""));
        assert_eq!(slash.status, 404);
    }
}
