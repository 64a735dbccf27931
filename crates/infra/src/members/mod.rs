//! Members, their invitations, passwords and second factors.

pub(crate) mod account;
pub(crate) mod administer;
pub(crate) mod fair_line;
pub(crate) mod hasher;
pub(crate) mod invitations;
pub(crate) mod passkeys;
pub(crate) mod password_resets;
pub(crate) mod row;
pub(crate) mod second_factor;
pub(crate) mod signatures;
pub(crate) mod store;

pub use hasher::Argon2Hasher;
pub use passkeys::PostgresPasskeyStore;
pub use signatures::RingSignatures;
pub use store::PostgresMemberStore;
