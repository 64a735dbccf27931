//! The package, and the files for operators in docs/operations.

mod compose;
mod kubernetes;
mod malformed_requests;
mod operations;
mod packaging;
mod proxies;
