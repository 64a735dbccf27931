//! The requests of the interface as a collection for Postman and programs that import its collections. It works as it
//! is once the API key is filled in.

use intake_domain::Environment;
use serde_json::{Value, json};

use crate::openapi::example_patient;

const SCHEMA: &str = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json";

/// The collection of a service that is reached at this address.
#[must_use]
pub fn postman_collection(base_url: &str, environment: Environment) -> String {
    let check = request("Check a patient without creating it", &["patients", "validate"], &[]);
    // Each press of Send creates a patient, as a booking of its own would.
    let create = request("Create a patient", &["patients"], &[("Idempotency-Key", "postman-{{$guid}}")]);
    let requests = match environment {
        Environment::Development => vec![check, create],
        // The patient is made up: never in a real register.
        Environment::Production => vec![check],
    };
    let collection = json!({
        "info": { "name": "intake", "schema": SCHEMA },
        "auth": { "type": "bearer", "bearer": [{ "key": "token", "value": "{{apiKey}}", "type": "string" }] },
        "variable": [
            { "key": "baseUrl", "value": format!("{base_url}/api/v1") },
            { "key": "apiKey", "value": "" },
        ],
        "item": requests,
    });
    collection.to_string()
}

fn request(name: &str, path: &[&str], headers: &[(&str, &str)]) -> Value {
    let headers = [("Content-Type", "application/json")].iter().chain(headers);
    let headers: Vec<_> = headers.map(|(key, value)| json!({ "key": key, "value": value })).collect();
    let url = format!("{{{{baseUrl}}}}/{}", path.join("/"));
    json!({
        "name": name,
        "request": {
            "method": "POST",
            "header": headers,
            "url": { "raw": url, "host": ["{{baseUrl}}"], "path": path },
            "body": { "mode": "raw", "raw": example_patient(), "options": { "raw": { "language": "json" } } },
        },
    })
}
