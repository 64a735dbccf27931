//! Who a person is, and how they prove it: accounts, their passwords and second factors, and the rows of sessions.

pub(crate) mod account_store;
pub(crate) mod address;
pub(crate) mod confirmation;
mod email_change_store;
pub(crate) mod fair_queue;
pub(crate) mod familiar_networks;
mod hasher;
mod passkey_store;
mod password_reset_store;
pub(crate) mod permission;
pub(crate) mod proof;
pub(crate) mod proofs;
pub(crate) mod row;
mod second_factor_store;
pub(crate) mod session_row;
pub(crate) mod share;
mod signatures;

pub use hasher::Argon2Hasher;
pub use passkey_store::PostgresPasskeyStore;
pub use signatures::RingSignatures;

use crate::database::connecting::pool::Database;

/// The ports to members, their invitations, accounts and second factors over PostgreSQL.
pub struct PostgresMembers(pub(crate) Database);

impl PostgresMembers {
    /// Members over this pool.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(database)
    }
}
