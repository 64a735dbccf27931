//! The port that stores API keys.

use async_trait::async_trait;
use time::{Duration, OffsetDateTime};

use crate::audit::context::AuditContext;
use crate::ids::{KeyId, OrganisationId};
use crate::key_note::KeyContact;
use crate::keys::allowed_networks::AllowedNetworks;
use crate::keys::api_key::{KeyDigest, KeyPlace};
use crate::keys::manage_error::ManageKeysError;
use crate::name::Name;
use crate::store_error::StoreError;

/// A key to be stored: everything but the key itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    /// A UUID version 7: sorts by creation.
    pub id: KeyId,
    /// The organisation that owns the key.
    pub organisation_id: OrganisationId,
    /// The name that its maker gave it.
    pub name: Name,
    /// The SHA-256 of the key, by which requests with it are recognised.
    pub digest: KeyDigest,
    /// The last characters of the key.
    pub hint: String,
    /// Time at which it was made.
    pub created_at: OffsetDateTime,
    /// Time at which it expires; none: never.
    pub expires_at: Option<OffsetDateTime>,
    /// The networks from which it is accepted. A replacement gets those of the replaced key.
    pub allowed_networks: AllowedNetworks,
    /// The company or person to call about it. A replacement gets that of the replaced key.
    pub contact: KeyContact,
    /// The key that it replaces, and how.
    pub replaces: Option<Replacement>,
}

/// Rule by which one key replaces another: both work until the new one has created a patient, and the old one for a
/// while longer, but not past its latest end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The key that will end.
    pub key: KeyId,
    /// Time for which it still works after the new one has created a patient.
    pub ends_after: Duration,
    /// Time at which it ends even if the new one has created no patient. An own end that is earlier stays.
    pub ends_by: OffsetDateTime,
}

impl Replacement {
    /// Time until a routine replacement ends the old key, unless another time is chosen: a vendor who has not installed
    /// the new key by then has forgotten it.
    pub const USUALLY_ENDS_WITHIN: Duration = Duration::days(14);

    /// Replaces a key that someone else may have: it ends with the making of the new one.
    #[must_use]
    pub fn at_once(key: KeyId, now: OffsetDateTime) -> Self {
        Self { key, ends_after: Duration::ZERO, ends_by: now }
    }
}

/// Stores the API keys of organisations.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait KeyStore: Send + Sync {
    /// Which keys suit the organisation. Another works as well, while all machines of the database are there.
    async fn place(&self, organisation: OrganisationId) -> Result<KeyPlace, StoreError>;

    /// Stores a key, and records the change with it.
    async fn add_key(&self, key: &NewKey, audit: &AuditContext) -> Result<(), ManageKeysError>;
}
