//! Sessions: signing in, also by a provider, and the browsers that are known.

pub(crate) mod choice;
pub(crate) mod known_browsers;
mod openid_provider;
mod provider_claims;
mod provider_http;
mod provider_line;
pub(crate) mod store;
pub(crate) mod waiting_sign_ins;

pub use openid_provider::{OpenIdProvider, OpenIdSettings};
pub use store::PostgresSessionStore;
