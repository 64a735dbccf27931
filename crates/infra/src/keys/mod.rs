//! Organisations, their keys, and what is noted of the keys' use.

pub(crate) mod answers;
pub(crate) mod description;
mod expiring;
pub(crate) mod homes;
pub(crate) mod refusals;
pub(crate) mod store;
pub(crate) mod use_writer;
pub(crate) mod uses;

pub use store::PostgresKeyStore;
pub use use_writer::KeyUseWriter;
pub use uses::KeyUses;
