//! Keys that will expire soon, which are announced to their organisation.

use async_trait::async_trait;
use time::{Duration, OffsetDateTime};

use crate::ids::{KeyId, OrganisationId};
use crate::store_error::StoreError;
use crate::zone::Zone;

/// The time before a key expires at which its organisation gets a notice. A key with a shorter life gets none.
pub const EXPIRY_ANNOUNCED_BEFORE: Duration = Duration::days(7);

/// A key that will expire soon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiringKey {
    /// The organisation whose key it is.
    pub organisation_id: OrganisationId,
    /// The key.
    pub id: KeyId,
    /// The organisation's name.
    pub organisation_name: String,
    /// The zone in which its members see days and times.
    pub zone: Zone,
    /// The name that its maker gave the key.
    pub name: String,
    /// The last characters of the key.
    pub hint: String,
    /// The company or person to call about it; empty: nobody is named.
    pub contact: String,
    /// Time at which it expires.
    pub expires_at: OffsetDateTime,
}

/// Finds the keys that will expire soon.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait ExpiringKeyStore: Send + Sync {
    /// The keys of all organisations that expire within [`EXPIRY_ANNOUNCED_BEFORE`], those of an organisation beside
    /// each other. Each is given once, to the first caller, and an organisation's at most once a day.
    async fn claim_expiring(&self, now: OffsetDateTime) -> Result<Vec<ExpiringKey>, StoreError>;
}
