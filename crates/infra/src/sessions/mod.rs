//! Sessions, and where their members signed in from.

pub(crate) mod familiar_networks;
pub(crate) mod known_browsers;
pub(crate) mod proofs;
pub(crate) mod row;
pub(crate) mod store;
pub(crate) mod waiting_sign_ins;

pub use store::PostgresSessionStore;
