//! Members, their invitations, passwords and second factors.

pub(crate) mod account_store;
pub(crate) mod address;
pub(crate) mod confirmation;
mod email_change_store;
pub(crate) mod fair_queue;
pub(crate) mod hasher;
mod invitation_store;
pub(crate) mod joining;
mod key_age_store;
mod member_store;
mod passkey_store;
mod password_reset_store;
pub(crate) mod permission;
pub(crate) mod proof;
pub(crate) mod row;
mod second_factor_store;
pub(crate) mod signatures;

pub use hasher::Argon2Hasher;
pub use passkey_store::PostgresPasskeyStore;
pub use signatures::RingSignatures;

use crate::database::connecting::pool::Database;

/// The ports to members, their invitations, accounts and second factors over PostgreSQL.
pub struct PostgresMembers(Database);

impl PostgresMembers {
    /// Members over this pool.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(database)
    }
}
