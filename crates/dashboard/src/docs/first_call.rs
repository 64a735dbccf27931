//! The first screen of the page: where the service is, how a request says who sends it, and a request with its answer.

use intake_domain::{Environment, KeyFormat};

use crate::docs::files::REFERENCE_TEXT;
use crate::docs::samples::block_below;

/// Heading of the reference above the request that creates a patient.
const CREATE: &str = "## Create a patient\n";

/// A request and its answer.
pub(super) struct FirstCall {
    /// Address of the interface.
    pub(super) address: String,
    pub(super) authorization: String,
    pub(super) request: String,
    pub(super) status: &'static str,
    pub(super) answer: &'static str,
}

impl FirstCall {
    /// In development it creates a made-up patient. Where patients are real, it creates none.
    pub(super) fn new(base_url: &str, format: &KeyFormat) -> Self {
        let address = format!("{base_url}/api/v1");
        let authorization = format!("Authorization: Bearer {}…", format.head());
        let (path, body, status, heading) = match format.environment() {
            Environment::Development => {
                let patient = block_below(&REFERENCE_TEXT, CREATE).split("\n\n").nth(1).unwrap_or_default();
                let patient = patient.replace('\n', "\n  ");
                let body = format!(" \\\n  --header \"Content-Type: application/json\" \\\n  --data '{patient}'");
                ("/patients", body, "201 Created", "### The answer\n")
            }
            Environment::Production => ("/key", String::new(), "200 OK", "## The key itself\n"),
        };
        let request = format!("curl {address}{path} \\\n  --header \"{authorization}\"{body}");
        Self { address, authorization, request, status, answer: block_below(&REFERENCE_TEXT, heading) }
    }
}
