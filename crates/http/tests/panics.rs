//! A part of the program that panics takes nothing with it: not the connection, not the worker, and no value of a
//! patient into the open.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests fail by panicking, and the mocks of this one are to panic"
)]

use std::sync::{Arc, Mutex};

use actix_web::App;
use actix_web::body::to_bytes;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service, try_call_service};
use intake_domain::{
    ApiKey, Environment, Field, KeyActivity, KeyCheck, KeyFormat, KeyHolder, MockKeyActivity, MockOwnKeyStore,
    MockPatientRegister, PatientRegister,
};
use intake_http::{Api, TrustedProxies, envelope};
use uuid::Uuid;

const CANARY: &str = "Canary-Bird";
const PATIENT: &str =
    r#"{"firstName":"Ada","lastName":"Canary-Bird","phoneNumber":"+61412345678","dateOfBirth":"1985-03-21"}"#;

fn format() -> KeyFormat {
    KeyFormat::new(&"intake".parse().unwrap(), Environment::Development)
}

fn key() -> ApiKey {
    format().mint([5; 32])
}

/// A register that panics at every patient, and says whose.
fn register() -> Arc<dyn PatientRegister> {
    let mut register = MockPatientRegister::new();
    register
        .expect_create()
        .returning(|registration| panic!("{} cannot be stored", registration.patient.get(Field::LastName).unwrap()));
    let holder = KeyHolder { key_id: Uuid::from_u128(1).into(), organisation_id: Uuid::from_u128(2).into() };
    register.expect_check_key().returning(move |_, _| Ok(KeyCheck::Active(holder)));
    Arc::new(register)
}

fn activity() -> Arc<dyn KeyActivity> {
    let mut activity = MockKeyActivity::new();
    activity.expect_note_answer().returning(|_, _, _| ());
    activity.expect_note_refusal().returning(|_, _| ());
    activity.expect_known_end().returning(|_| None);
    Arc::new(activity)
}

fn request(body: &'static str) -> TestRequest {
    TestRequest::post()
        .uri("/api/v1/patients")
        .peer_addr("127.0.0.1:1".parse().unwrap())
        .insert_header(("X-Forwarded-Proto", "https"))
        .insert_header(("X-Request-Id", "the-one"))
        .insert_header(("Content-Type", "application/json"))
        .insert_header(("Authorization", format!("Bearer {}", key().expose())))
        .set_payload(body)
}

#[test]
fn a_panic_is_answered_like_every_other_failure_and_the_next_request_is_served() {
    let said = Arc::new(Mutex::new(String::new()));
    let hears = Arc::clone(&said);
    std::panic::set_hook(Box::new(move |panic| {
        hears.lock().unwrap().push_str(&panic.to_string());
    }));
    actix_web::rt::System::new().block_on(async {
        let proxies = TrustedProxies::new(vec!["127.0.0.1/32".parse().unwrap()]);
        let base_url = "https://localhost".to_owned();
        let own_keys = Arc::new(MockOwnKeyStore::new());
        let (register, activity, format) = (register(), activity(), format());
        let api = Api { register, activity, own_keys, format, rate: None, proxies, base_url }.configure();
        let service = init_service(App::new().wrap(from_fn(envelope)).configure(api)).await;
        let failed = try_call_service(&service, request(PATIENT).to_request()).await;
        assert!(said.lock().unwrap().contains(CANARY), "it did panic, and its message names the patient");
        let answer = failed.map(|answer| answer.status()).unwrap_err().error_response();
        assert_eq!(answer.status(), 500);
        for (name, value) in [
            ("content-type", "application/json"),
            ("x-request-id", "the-one"),
            ("cache-control", "no-store"),
            ("strict-transport-security", "max-age=31536000"),
        ] {
            assert_eq!(answer.headers().get(name).unwrap(), value);
        }
        let body = to_bytes(answer.into_body()).await.map_err(|_| "no body").unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body.pointer("/title").unwrap(), "Internal Server Error");
        assert!(!body.to_string().contains(CANARY), "{body}");

        let served = try_call_service(&service, request("{}").to_request()).await.unwrap();
        assert_eq!(served.status(), 422);
    });
}
