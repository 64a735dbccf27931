//! Sessions, and where their members signed in from.

pub(crate) mod choice;
pub(crate) mod familiar_networks;
pub(crate) mod known_browsers;
mod openid_provider;
pub(crate) mod proofs;
mod provider_claims;
mod provider_http;
mod provider_line;
pub(crate) mod row;
pub(crate) mod store;
pub(crate) mod waiting_sign_ins;

pub use openid_provider::{OpenIdProvider, OpenIdSettings};
pub use store::PostgresSessionStore;
