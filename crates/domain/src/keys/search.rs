//! Looking for keys: a page at a time, because revoked keys are kept for ever.

use std::collections::BTreeMap;

use async_trait::async_trait;
use time::{Duration, OffsetDateTime};

use crate::ids::{KeyId, MemberId, OrganisationId};
use crate::keys::record::KeyRecord;
use crate::store_error::StoreError;

/// Keys on one page.
pub const KEYS_PER_PAGE: u32 = 50;
/// Time for which a key that is over stays among the others: long enough to see what was done last.
pub const ENDED_LATELY: Duration = Duration::days(7);
/// Time enough to replace a key before it expires.
pub const EXPIRES_SOON: Duration = Duration::days(7);

/// Which keys are looked for, and which page of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySearch {
    /// Part of the name or of the creator's name, in any case, or a text that ends with the hint. Empty: any key.
    pub text: String,
    /// Which of them.
    pub scope: KeyScope,
    /// Given: only keys that were made before this moment and not used since.
    pub unused_since: Option<OffsetDateTime>,
    /// Given: only keys that this member made.
    pub made_by: Option<MemberId>,
    /// The order of the pages.
    pub order: KeyOrder,
    /// The page, from 1 on. One after the last counts as the last.
    pub page: u32,
}

/// Which keys are looked for: by their status, or because they need attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyScope {
    /// Keys that are not over, and those that were revoked or expired within [`ENDED_LATELY`].
    Current,
    /// Keys that are accepted.
    Active,
    /// Keys of a suspended organisation that are not over.
    Suspended,
    /// Keys that are paused and neither suspended nor over.
    Paused,
    /// Keys that were revoked or have expired.
    Ended,
    /// Keys of every status.
    All,
    /// Keys that expired within [`ENDED_LATELY`] and have no replacement.
    Lapsed,
    /// Active keys that expire within [`EXPIRES_SOON`] and have no replacement.
    Expiring,
    /// Active keys of which every request was refused.
    OnlyRefused,
    /// Active keys that no request came with, and whose first request is not [awaited](KeyRecord::is_awaited).
    NeverUsed,
    /// Active keys that were announced as silent and not used since.
    Silent,
}

/// The order of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// The newest first.
    Newest,
    /// Alphabetical by name, ignoring case.
    Name,
    /// The one that was used last first.
    Used,
    /// The one that expires first first.
    Expires,
}

/// One page of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPage {
    /// Its keys.
    pub keys: Vec<KeyRecord>,
    /// The number of the page, from 1 on.
    pub page: u32,
    /// Number of keys that are found, on all pages.
    pub found: u64,
    /// Number of keys in each scope. By status only those count that fit the rest of the search.
    pub in_scope: BTreeMap<KeyScope, u64>,
    /// Number of keys of the organisation.
    pub total: u64,
    /// True if any of them was ever used.
    pub is_any_used: bool,
}

impl KeyPage {
    /// Number of keys in a scope.
    #[must_use]
    pub fn count(&self, scope: KeyScope) -> u64 {
        self.in_scope.get(&scope).copied().unwrap_or_default()
    }

    /// Returns how many pages there are: at least one.
    #[must_use]
    pub fn pages(&self) -> u32 {
        u32::try_from(self.found.div_ceil(KEYS_PER_PAGE.into())).unwrap_or(u32::MAX).max(1)
    }
}

/// The keys as their organisation sees them.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait KeyList: Send + Sync {
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

    /// The organisation's keys that a member made, who may have left or have another name since.
    async fn made_by(&self, organisation: OrganisationId, member: MemberId) -> Result<Vec<KeyId>, StoreError>;
}
