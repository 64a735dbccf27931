//! The requests of the interface as a collection for Postman and programs that import its collections. It works as it
//! is once the API key is filled in.

use intake_domain::Environment;
use serde_json::{Value, json};

use crate::openapi::example_patient;

const SCHEMA: &str = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json";

/// A day whose patients can be counted; people change it.
const EXAMPLE_DAY: &str = "2025-12-03";

/// The collection of a service that is reached at this address.
#[must_use]
pub fn postman_collection(base_url: &str, environment: Environment) -> String {
    let mut requests = vec![send("Check a patient without creating it", &["patients", "validate"], None)];
    // The patient is made up: never in a real register.
    if environment == Environment::Development {
        // Each press of Send creates a patient, as a booking of its own would.
        requests.push(send("Create a patient", &["patients"], Some(("Idempotency-Key", "postman-{{$guid}}"))));
    }
    requests.extend([
        ask("Show this key", &["key"]),
        ask("List the last refusals of this key", &["key", "refusals"]),
        ask("Count what may be wrong with the patients of this key", &["key", "quality"]),
        ask("Count the patients of a day", &["key", "days", "{{day}}"]),
    ]);
    let collection = json!({
        "info": { "name": "intake", "schema": SCHEMA },
        "auth": { "type": "bearer", "bearer": [{ "key": "token", "value": "{{apiKey}}", "type": "string" }] },
        "variable": [
            { "key": "baseUrl", "value": format!("{base_url}/api/v1") },
            { "key": "apiKey", "value": "" },
            { "key": "day", "value": EXAMPLE_DAY },
        ],
        "item": requests,
    });
    collection.to_string()
}

/// A request that sends the example of a patient.
fn send(name: &str, path: &[&str], header: Option<(&str, &str)>) -> Value {
    let headers = [("Content-Type", "application/json")].into_iter().chain(header);
    let headers: Vec<_> = headers.map(|(key, value)| json!({ "key": key, "value": value })).collect();
    let body = json!({ "mode": "raw", "raw": example_patient(), "options": { "raw": { "language": "json" } } });
    json!({ "name": name, "request": { "method": "POST", "header": headers, "url": url(path), "body": body } })
}

fn ask(name: &str, path: &[&str]) -> Value {
    json!({ "name": name, "request": { "method": "GET", "header": [], "url": url(path) } })
}

fn url(path: &[&str]) -> Value {
    json!({ "raw": format!("{{{{baseUrl}}}}/{}", path.join("/")), "host": ["{{baseUrl}}"], "path": path })
}
