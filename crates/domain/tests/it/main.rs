//! The rules and the use cases, from outside the crate: ports are mocked.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

mod account;
mod conversions;
mod create_patient;
mod fixtures;
mod manage_keys;
mod members;
mod outside;
mod own_key;
mod pairs;
mod rules;
mod second_factor;
