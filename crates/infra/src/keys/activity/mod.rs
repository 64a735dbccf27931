//! What is noted of the use of keys: when, with which answers, from which clients.

pub(crate) mod answers;
mod busiest;
pub(crate) mod clients;
pub(crate) mod refusals;
mod store;
pub(crate) mod use_writer;
pub(crate) mod uses;

pub use busiest::{KeyUsage, key_usage};
pub use store::PostgresKeyActivity;
pub use use_writer::KeyUseWriter;
pub use uses::KeyUses;
