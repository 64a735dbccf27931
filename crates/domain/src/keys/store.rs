//! The port to the API keys of organisations.

use async_trait::async_trait;
use time::{Duration, OffsetDateTime};

use crate::audit::action::AuditContext;
use crate::ids::{KeyId, OrganisationId};
use crate::key_note::KeyNote;
use crate::keys::allowed_networks::AllowedNetworks;
use crate::keys::api_key::KeyDigest;
use crate::keys::expiring::ExpiringKey;
use crate::keys::key_age::KeyAge;
use crate::keys::record::KeyRecord;
use crate::keys::search::{KeyPage, KeySearch};
use crate::keys::unusual::UnusualKey;
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
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it expires; none: never.
    pub expires_at: Option<OffsetDateTime>,
    /// The networks from which it is accepted. A replacement gets those of the replaced key.
    pub allowed_networks: AllowedNetworks,
    /// The key that it replaces, and how.
    pub replaces: Option<Replacement>,
}

/// How one key replaces another: both work until the new one is first used, and the old one for a while longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The key that will end.
    pub key: KeyId,
    /// How long it still works after the first use of the new one.
    pub ends_after: Duration,
}

/// Keys of an organisation that may be active at once: far more than people can look after, and few enough for one
/// page. Keys made at the same moment may exceed it by a few.
pub const ACTIVE_KEYS_MAX: u32 = 500;

/// Keys that the members of an organisation may make in a day: enough to replace every active key at once. Revoked keys
/// are kept for ever, so without a limit one member could fill the register with them.
pub const KEYS_PER_DAY_MAX: u32 = ACTIVE_KEYS_MAX;

/// What became of an attempt to store a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// What became of an attempt to revoke a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevokeOutcome {
    /// The key is revoked, by this call or an earlier one.
    Revoked {
        /// When it was first revoked, by the store's clock: not before the last use that was allowed.
        at: OffsetDateTime,
    },
    /// There is no such key, or it belongs to another organisation than the one asked for.
    NotFound,
}

/// What became of an attempt to pause a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseOutcome {
    /// The key is paused, by this call or an earlier one.
    Paused {
        /// Since when, by the store's clock.
        at: OffsetDateTime,
    },
    /// The key was revoked or has expired.
    Over,
    /// There is no such key, or it belongs to another organisation than the one asked for.
    NotFound,
}

/// What became of an attempt to resume a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeOutcome {
    /// The key works again.
    Resumed,
    /// The key was not paused; nothing was recorded.
    NotPaused,
    /// The key was revoked or has expired.
    Over,
    /// There is no such key, or it belongs to another organisation than the one asked for.
    NotFound,
}

/// What became of an attempt to change what people call a key or know about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKeyOutcome {
    /// It is changed.
    Changed,
    /// It was so before; nothing was recorded.
    Unchanged,
    /// The key was revoked: it stays as it was then.
    Revoked,
    /// The organisation has no such key.
    NotFound,
}

/// What became of an attempt to clear a key's mark that it was sent in clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClearMarkOutcome {
    /// The mark is gone.
    Cleared,
    /// The key has no mark; nothing was changed or recorded.
    NotMarked,
    /// There is no such key.
    NotFound,
}

/// The API keys of organisations.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait KeyStore: Send + Sync {
    /// Gives one of the organisation's keys another name, and records the change with it.
    async fn rename(
        &self,
        organisation: OrganisationId,
        key: KeyId,
        name: &Name,
        audit: &AuditContext,
    ) -> Result<ChangeKeyOutcome, StoreError>;

    /// Writes another note about one of the organisation's keys, and records the change with it.
    async fn write_note(
        &self,
        organisation: OrganisationId,
        key: KeyId,
        note: &KeyNote,
        audit: &AuditContext,
    ) -> Result<ChangeKeyOutcome, StoreError>;

    /// Stores a key, and records the change with it.
    async fn add_key(&self, key: &NewKey, audit: &AuditContext) -> Result<AddKeyOutcome, StoreError>;

    /// The organisation's keys, the oldest first. None: there is no such organisation.
    async fn keys(&self, organisation: OrganisationId) -> Result<Option<Vec<KeyRecord>>, StoreError>;

    /// A page of the organisation's keys.
    async fn search(
        &self,
        organisation: OrganisationId,
        search: &KeySearch,
        now: OffsetDateTime,
    ) -> Result<KeyPage, StoreError>;

    /// One of the organisation's keys. None: it has no such key.
    async fn key(&self, organisation: OrganisationId, key: KeyId) -> Result<Option<KeyRecord>, StoreError>;

    /// The keys of all organisations that expire within [`EXPIRY_ANNOUNCED_BEFORE`](crate::EXPIRY_ANNOUNCED_BEFORE).
    /// Each is given once, to the first caller.
    async fn claim_expiring(&self, now: OffsetDateTime) -> Result<Vec<ExpiringKey>, StoreError>;

    /// The busy keys of all organisations that have fallen silent or are refused more often than usual, as far as their
    /// organisation got no such news today. Each is given once, to the first caller.
    async fn claim_unusual(&self) -> Result<Vec<UnusualKey>, StoreError>;

    /// Clears the mark that a key was sent in clear, and records the change with it.
    async fn clear_sent_in_clear(&self, key: KeyId, audit: &AuditContext) -> Result<ClearMarkOutcome, StoreError>;

    /// Pauses a key, and records it: once this has returned, no request that starts afterwards creates anything with
    /// it, until it is resumed. If an organisation is given, only its keys are found.
    async fn pause(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        audit: &AuditContext,
    ) -> Result<PauseOutcome, StoreError>;

    /// Resumes a key that was paused and is neither revoked nor expired, and records it. If an organisation is given,
    /// only its keys are found.
    async fn resume(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        audit: &AuditContext,
    ) -> Result<ResumeOutcome, StoreError>;

    /// Revokes a key for good, and records the change with it. Once this has returned, no request that starts
    /// afterwards creates anything with it. If an organisation is given, only its keys are found.
    async fn revoke(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        audit: &AuditContext,
    ) -> Result<RevokeOutcome, StoreError>;
}
