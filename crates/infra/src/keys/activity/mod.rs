//! What is noted of the use of keys: when, with which answers, from which clients.

pub(crate) mod answers;
mod busiest;
pub(crate) mod clients;
mod owned_key;
pub(crate) mod refusals;
mod refused_request;
mod store;
pub(crate) mod use_writer;
pub(crate) mod uses;

pub use busiest::{KeyUsage, key_usage};
pub use owned_key::OwnedKey;
pub use refused_request::{RefusedRequest, refused_requests};
pub use store::PostgresKeyActivity;
pub use use_writer::KeyUseWriter;
pub use uses::KeyUses;
