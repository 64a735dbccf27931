//! What a key is worth to a request.

use crate::ids::{KeyId, OrganisationId};

/// Whose key it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyHolder {
    /// The key's id.
    pub key_id: KeyId,
    /// The organisation that owns the key.
    pub organisation_id: OrganisationId,
}

/// Why a well-formed key opens nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyRefusal {
    /// No organisation has such a key.
    #[error("The API key is unknown")]
    Unknown,
    /// Its organisation revoked it.
    #[error("The API key was revoked")]
    Revoked,
    /// Its time is over.
    #[error("The API key has expired")]
    Expired,
}

/// What a key is worth at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStanding {
    /// It opens the door for its holder.
    Active(KeyHolder),
    /// It opens nothing.
    Refused(KeyRefusal),
}
