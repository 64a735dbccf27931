//! The domain's ports over PostgreSQL with Diesel, the schema, and a database of one's own where there is none.

mod audit_log;
mod bootstrap;
mod connect;
mod database;
mod database_url;
mod diesel_errors;
pub mod embedded;
mod fair_line;
mod familiar_networks;
pub mod grants;
mod invitations;
mod key_answers;
mod key_store;
mod key_use_writer;
mod key_uses;
mod left_behind;
mod member_store;
pub mod migrations;
mod password_hasher;
mod patient_register;
pub mod pooler;
pub mod production;
mod schema;
mod second_factor;
mod session_store;
mod sweep;
mod vital_thread;

pub use audit_log::PostgresAuditLog;
pub use bootstrap::{Prepared, SERVICE_ROLE, prepare};
pub use database::Database;
pub use database_url::{DatabaseUrl, DatabaseUrlError};
pub use key_store::PostgresKeyStore;
pub use key_use_writer::KeyUseWriter;
pub use key_uses::KeyUses;
pub use member_store::PostgresMemberStore;
pub use password_hasher::Argon2Hasher;
pub use patient_register::PostgresPatientRegister;
pub use session_store::PostgresSessionStore;
pub use vital_thread::{is_vital_thread, spawn_vital};

// Named for its features alone: they decide how libpq is built.
use pq_sys as _;
