//! The port to what is stored of a key that asks about itself.

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::ids::{KeyId, OrganisationId};
use crate::keys::allowed_networks::AllowedNetworks;
use crate::keys::check::KeyHolder;
use crate::own_key::day::{CreatedInPart, DayPart};
use crate::store_error::StoreError;
use crate::zone::Zone;

/// A key, as its holder may see it: nothing of the members, their notes, or other keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnKey {
    /// The id of the key's record.
    pub id: KeyId,
    /// The name that its maker gave it.
    pub name: String,
    /// The last characters of the key.
    pub hint: String,
    /// The organisation that owns the key.
    pub organisation_id: OrganisationId,
    /// The organisation's name.
    pub organisation_name: String,
    /// The zone of the organisation's days.
    pub zone: Zone,
    /// Time at which it was made.
    pub created_at: OffsetDateTime,
    /// Time at which it expires; none: never.
    pub expires_at: Option<OffsetDateTime>,
    /// The networks from which it is accepted.
    pub allowed_networks: AllowedNetworks,
}

/// Answers what keys ask about themselves.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait OwnKeyStore: Send + Sync {
    /// The key. None: it is not stored any more.
    async fn own_key(&self, holder: KeyHolder) -> Result<Option<OwnKey>, StoreError>;

    /// Counts what the key created in this part of a day.
    async fn created(&self, holder: KeyHolder, part: DayPart) -> Result<CreatedInPart, StoreError>;
}
