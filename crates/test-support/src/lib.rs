//! What tests share: a PostgreSQL with a database for each test, a running service to talk to over real HTTPS, and a
//! counter of the round trips between the two.
#![expect(clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests fail by panicking and say why")]

mod browser;
mod client;
mod clinic;
mod database;
mod round_trips;
mod service;

pub use browser::{Browser, Element};
pub use client::{Client, Connection, Response, request};
pub use clinic::{Clinic, patient};
pub use database::{TestDatabase, WithCount};
pub use round_trips::RoundTripCounter;
pub use service::{Service, ServiceBuilder, create_request, wait_for};
