//! The domain's ports over PostgreSQL with Diesel, the schema, and an embedded database for where there is none.

mod audit;
mod database;
mod diesel_errors;
pub mod embedded;
mod feed;
mod keys;
mod left_behind;
mod mail;
mod members;
mod metrics;
mod patients;
mod schema;
mod sessions;
mod shards;
mod sweep;
mod vital_thread;

pub use audit::PostgresAuditLog;
pub use database::{
    Database, DatabaseUrl, DatabaseUrlError, Durability, SchemaError, Unready, environment, grants, migrations, origin,
    owner, pooler, production, restored, spread,
};
pub use embedded::prepare::{Prepared, SERVICE_ROLE, prepare};
pub use feed::{PostgresPatientFeed, readers};
pub use keys::{KeyUseWriter, KeyUses, PostgresKeyStore};
pub use mail::{MailSender, MailSenderError, SmtpMailer, SmtpUrl, SmtpUrlError};
pub use members::{Argon2Hasher, PostgresMemberStore, PostgresPasskeyStore, RingSignatures};
pub use metrics::write_metrics;
pub use patients::{PostgresPatientRegister, PostgresPatientRights};
pub use sessions::PostgresSessionStore;
pub use vital_thread::{Pulse, is_vital_thread, spawn_vital, stuck_thread};

// Named for its features alone: they decide how libpq is built.
use pq_sys as _;
