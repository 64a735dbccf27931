//! The domain's ports over PostgreSQL with Diesel, the schema, and an embedded database for where there is none.

mod abandoned;
mod accounts;
mod audit;
mod client_tls;
mod database;
mod diesel_errors;
pub mod embedded;
mod feed;
mod keys;
mod mail;
mod members;
mod metrics;
mod organisations;
mod own_key;
mod pairs;
mod patients;
mod schema;
mod sessions;
mod sweep;
mod vital_thread;

pub use accounts::{Argon2Hasher, PostgresMembers, PostgresPasskeyStore, RingSignatures};
pub use audit::{
    AuditFollower, AuditPosition, AuditSelection, AuditStream, FollowError, PostgresAuditLog, accept_restored,
    record_migrations, record_reader,
};
pub use client_tls::client_tls;
pub use database::{
    CheckConnection, Database, DatabaseUrl, DatabaseUrlError, Durability, SchemaError, Unready, clock, environment,
    grants, guarantees, means_to_read, migrate, migrations, nodes, origin, owner, pooler, production, restored, spread,
};
pub use embedded::prepare::{Prepared, SERVICE_ROLE, prepare};
pub use feed::{Backlog, PostgresPatientFeed, readers};
pub use keys::{
    KeyDirectory, KeyUsage, KeyUseWriter, KeyUses, OwnedKey, PostgresKeyActivity, PostgresKeyStore, RefusedRequest,
    key_usage, refused_requests, revoke_all_keys,
};
pub use mail::{MailSender, MailSenderError, SmtpMailer, SmtpUrl, SmtpUrlError};
pub use metrics::write_metrics;
pub use organisations::{EraseOrganisation, OrganisationOutcome, PostgresOrganisations, erase_organisation};
pub use own_key::PostgresOwnKeyStore;
pub use patients::{PostgresPatientRegister, PostgresPatientRights, Trial, make_direct_writes, try_to_store};
pub use sessions::{OpenIdProvider, OpenIdSettings, PostgresSessionStore};
pub use vital_thread::{Pulse, is_vital_thread, spawn_vital, stuck_thread};

// Named for its features alone: they decide how libpq is built.
use pq_sys as _;
