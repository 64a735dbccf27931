//! What the register answers about a key that a request carries.

use std::net::IpAddr;

use crate::ids::{KeyId, OrganisationId};
use crate::keys::api_key::KeyDigest;

/// Who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// SHA-256 of the API key.
    pub key: KeyDigest,
    /// The client's address, if it is known.
    pub address: Option<IpAddr>,
}

/// A key and the organisation that owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyHolder {
    /// The id of the key's record.
    pub key_id: KeyId,
    /// The organisation that owns the key.
    pub organisation_id: OrganisationId,
}

/// Reason why a well-formed key is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum KeyRefusal {
    /// No organisation has such a key.
    #[error("The API key is unknown")]
    Unknown,
    /// Its organisation revoked it.
    #[error("The API key was revoked")]
    Revoked,
    /// Its organisation is suspended.
    #[error("The organisation is suspended")]
    Suspended,
    /// Its end has passed.
    #[error("The API key has expired")]
    Expired,
    /// Its organisation paused it.
    #[error("The API key is paused")]
    Paused,
    /// Its organisation accepts it only from other networks.
    #[error("The API key is not allowed from this address")]
    Elsewhere,
}

/// Reason why a key is checked for a request that creates nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckedFor {
    /// A patient was checked and found valid: a use of the key, if it is accepted.
    Use,
    /// The request is refused, or asks about the key itself: no use of it. Else a program that asks again and again
    /// would hide that no patient arrives.
    Answer,
}

/// Status of a key at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum KeyCheck {
    /// Accepted, on behalf of its holder.
    Active(KeyHolder),
    /// Refused, and why.
    Refused(KeyRefusal),
}
