//! The domain's ports over PostgreSQL with Diesel, the schema, and a database of one's own where there is none.

mod bootstrap;
mod database;
mod database_url;
mod diesel_errors;
pub mod embedded;
mod key_store;
mod key_uses;
pub mod migrations;
mod patient_register;
mod schema;

pub use bootstrap::{Prepared, SERVICE_ROLE, prepare};
pub use database::Database;
pub use database_url::{DatabaseUrl, DatabaseUrlError};
pub use key_store::PostgresKeyStore;
pub use key_uses::{KeyUseWriter, KeyUses};
pub use patient_register::PostgresPatientRegister;

// Named for its features alone: they decide how libpq is built.
use pq_sys as _;
