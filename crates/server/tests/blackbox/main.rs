//! Black-box tests: the real program over real HTTPS with a real PostgreSQL. One file for each promise.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking and say why")]

mod authentication;
mod body;
mod certificates;
mod command_line;
mod dashboard;
mod dashboard_guard;
mod embedded_database;
mod environments;
mod errors;
mod first_run;
mod floods;
mod grants;
mod hangs;
mod held_rows;
mod idempotency;
mod invitations;
mod key_life_cycle;
mod listeners;
mod order_of_checks;
mod overload;
mod plain_http;
mod pooler;
mod privacy;
mod rate_limit;
mod round_trips;
mod sign_in_line;
mod slow_clients;
mod stopping;
mod torture;
mod two_step_sign_in;
mod values;

use std::sync::{Mutex, MutexGuard, PoisonError};

use intake_domain::{ApiKey, Environment};
use intake_test_support::{Clinic, Response, Service, ServiceBuilder, TestDatabase};
use serde_json::{Value, json};

/// A service in development over a database of its own, with an organisation and an active key.
struct Door {
    service: Service,
    clinic: Clinic,
    key: ApiKey,
    database: TestDatabase,
}

impl Door {
    fn open() -> Self {
        Self::open_with(|builder| builder)
    }

    fn open_with(settings: impl FnOnce(ServiceBuilder) -> ServiceBuilder) -> Self {
        let database = TestDatabase::new();
        let service = settings(service(&database)).start();
        let clinic = Clinic::open(&database.service, Environment::Development);
        let (_, key) = clinic.key();
        Self { service, clinic, key, database }
    }

    fn create(&self, patient: &Value) -> Response {
        self.service.create(&self.key, patient)
    }

    fn send_body(&self, body: impl AsRef<[u8]>) -> Response {
        self.service.create_with(&self.key, &[], body.as_ref())
    }

    fn patients(&self) -> i64 {
        self.database.count("patients")
    }
}

/// Keeps tests apart of which one takes all of the machine and another looks at the clock.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn program() -> ServiceBuilder {
    ServiceBuilder::new(env!("CARGO_BIN_EXE_intake"))
}

fn service(database: &TestDatabase) -> ServiceBuilder {
    program().database(database)
}

/// The same in production, behind a proxy on this machine.
fn in_production(builder: ServiceBuilder) -> ServiceBuilder {
    let builder = builder.setting("INTAKE_ENVIRONMENT", "production").setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1");
    // A database that forgets is refused as such.
    builder.setting("INTAKE_DURABILITY", "")
}

/// The line with which a service refuses to start.
#[track_caller]
fn complaint(builder: ServiceBuilder) -> String {
    let output = builder.run();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    let complaint = text.lines().last().unwrap().to_owned();
    assert!(complaint.starts_with("intake: "), "{text}");
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
