//! The port that stores API keys.

use async_trait::async_trait;
use time::{Duration, OffsetDateTime};

use crate::audit::context::AuditContext;
use crate::ids::{KeyId, OrganisationId};
use crate::key_note::KeyContact;
use crate::keys::allowed_networks::AllowedNetworks;
use crate::keys::api_key::{KeyDigest, KeyPlace};
use crate::keys::key_age::KeyAge;
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

/// Keys of an organisation that may be active at once: far more than people can look after, and few enough for one
/// page. Keys made at the same moment may exceed it by a few.
pub const ACTIVE_KEYS_MAX: u32 = 500;

/// Keys that the members of an organisation may make in a day: enough to replace every active key at once. Revoked keys
/// are kept for ever, so without a limit one member could fill the register with them.
pub const KEYS_PER_DAY_MAX: u32 = ACTIVE_KEYS_MAX;

/// Outcome of an attempt to store a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum AddKeyOutcome {
    /// It is stored.
    Added,
    /// Another key has this id: the same request was carried out before.
    AlreadyThere,
    /// No organisation has the id that was given.
    NoSuchOrganisation,
    /// The organisation is suspended.
    OrganisationSuspended,
    /// The organisation is closed.
    OrganisationClosed,
    /// The key would work for longer than the organisation lets its keys work.
    TooLong(KeyAge),
    /// The key to be replaced is not an active one of the organisation.
    NothingToReplace,
    /// The organisation has [`ACTIVE_KEYS_MAX`] active keys.
    TooMany,
    /// The members of the organisation made [`KEYS_PER_DAY_MAX`] keys within a day.
    TooManyToday,
}

/// Stores the API keys of organisations.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait KeyStore: Send + Sync {
    /// Which keys suit the organisation. Another works as well, while all machines of the database are there.
    async fn place(&self, organisation: OrganisationId) -> Result<KeyPlace, StoreError>;

    /// Stores a key, and records the change with it.
    async fn add_key(&self, key: &NewKey, audit: &AuditContext) -> Result<AddKeyOutcome, StoreError>;
}
