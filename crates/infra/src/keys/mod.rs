//! API keys, and what is noted of the keys' use.

use intake_domain::KeyHolder;
use uuid::Uuid;

pub(crate) mod activity;
mod allowed_networks;
mod description;
pub(crate) mod directory;
mod expiring;
mod habit;
mod known;
mod list;
mod makers;
mod named;
pub(crate) mod network_sql;
mod only_refused;
mod pause;
mod revoke;
mod search;
mod state_store;
pub(crate) mod status;
mod stop;
pub(crate) mod store;
mod unusual;

pub use activity::{
    KeyUsage, KeyUseWriter, KeyUses, OwnedKey, PostgresKeyActivity, RefusedRequest, key_usage, refused_requests,
};
pub use directory::KeyDirectory;
pub use revoke::revoke_all_keys;
pub use store::PostgresKeyStore;

/// The primary key of the tables about keys, in its order. Every writer locks rows in this order, so that two services
/// never deadlock.
pub(crate) fn ids(holder: &KeyHolder) -> (Uuid, Uuid) {
    (*holder.organisation_id.as_uuid(), *holder.key_id.as_uuid())
}

/// The primary keys of these rows, one column each.
pub(crate) fn ids_of<T>(rows: &[(KeyHolder, T)]) -> (Vec<Uuid>, Vec<Uuid>) {
    rows.iter().map(|(holder, _)| ids(holder)).unzip()
}
