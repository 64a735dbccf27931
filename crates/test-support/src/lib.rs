//! What tests share: a PostgreSQL with a database for each test, and a running service to talk to over real HTTPS.
#![expect(clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod database;

pub use database::TestDatabase;
