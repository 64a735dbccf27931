//! The package, and the files for operators in docs/operations.

mod compose;
mod front_door;
mod kubernetes;
mod malformed_requests;
pub(crate) mod operations;
mod packaging;
mod proxies;
mod quiet_day;
