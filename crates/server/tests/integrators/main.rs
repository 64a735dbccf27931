//! What integrators do with the service, done with the tools that they use: clients generated from the OpenAPI
//! document, linters, thousands of examples made from it, and every block of the guide run as it is printed.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests fail by panicking and say why")]

mod compare_day;
mod conversions;
mod examples;
mod fhir;
mod fixtures;
mod generated_clients;
mod guide;
mod linters;
mod openapi_generator;
mod receivers;
mod retries;
mod secret_scanners;
mod tools;
