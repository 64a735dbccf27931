//! Reasons why keys of an organisation are not changed, and the limits among them.

use crate::ids::{KeyId, OrganisationId};
use crate::keys::key_age::KeyAge;
use crate::store_error::StoreError;

/// Keys of an organisation that may be active at once: far more than people can look after, and few enough for one
/// page. Keys made at the same moment may exceed it by a few.
pub const ACTIVE_KEYS_MAX: u32 = 500;

/// Keys that the members of an organisation may make in a day: enough to replace every active key at once. Revoked keys
/// are kept for ever, so without a limit one member could fill the register with them.
pub const KEYS_PER_DAY_MAX: u32 = ACTIVE_KEYS_MAX;

/// Reason why keys could not be managed.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum ManageKeysError {
    /// No organisation has this id.
    #[error("there is no organisation {0}")]
    NoSuchOrganisation(OrganisationId),
    /// The organisation is suspended.
    #[error("the organisation {0} is suspended, so it gets no keys")]
    OrganisationSuspended(OrganisationId),
    /// The organisation is closed.
    #[error("the organisation {0} is closed, so it gets no keys")]
    OrganisationClosed(OrganisationId),
    /// No key has this id.
    #[error("there is no key {0}")]
    NoSuchKey(KeyId),
    /// The key would work for longer than the organisation lets its keys work.
    #[error("keys of this organisation must expire within {0}")]
    TooLong(KeyAge),
    /// The request was sent before: its key was shown then, and cannot be shown again.
    #[error("the key was made already")]
    AlreadyMade,
    /// The key to be replaced is suspended or revoked, or belongs to another organisation.
    #[error("there is no key to replace")]
    NothingToReplace,
    /// The organisation has [`ACTIVE_KEYS_MAX`] active keys, which is the limit.
    #[error("the organisation has {ACTIVE_KEYS_MAX} active keys: revoke one first")]
    TooManyKeys,
    /// The members of the organisation made [`KEYS_PER_DAY_MAX`] keys within a day, which is the limit.
    #[error("{KEYS_PER_DAY_MAX} keys were made within a day: try again tomorrow")]
    TooManyToday,
    /// The key was revoked or has expired, so it stays as it is.
    #[error("the key {0} was revoked or has expired")]
    KeyIsOver(KeyId),
    /// The member is not an administrator, or no longer.
    #[error("only administrators can do this")]
    NotAdministrator,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}
