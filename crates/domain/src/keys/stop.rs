//! The port that stops all keys of an organisation together, and resumes them together.

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::audit::context::AuditContext;
use crate::ids::{AuditEntryId, KeyId, OrganisationId};
use crate::keys::manage_error::ManageKeysError;
use crate::store_error::StoreError;

/// Keys that were stopped together and can be resumed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyStop {
    /// The audit entry that recorded it.
    pub id: AuditEntryId,
    /// Time at which they were paused.
    pub at: OffsetDateTime,
    /// The name of the member who stopped them; none: an operator did.
    pub by: Option<String>,
    /// Number of its keys that are still paused and not over.
    pub keys: usize,
}

/// A key that was stopped or resumed together with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppedKey {
    /// Its id.
    pub id: KeyId,
    /// The name that its maker gave it.
    pub name: String,
    /// The last characters of the key.
    pub hint: String,
}

/// Stops all keys of an organisation together. Both changes are for administrators and operators, and fail with
/// [`ManageKeysError::NotAdministrator`], [`ManageKeysError::NoSuchOrganisation`] or [`ManageKeysError::Store`].
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait KeyStopStore: Send + Sync {
    /// Pauses every key that is neither paused nor over, and records it for each and for all. Once this has returned,
    /// no request that starts afterwards creates anything with one of them. Empty: there was none, and nothing was
    /// recorded.
    async fn stop_all(
        &self,
        organisation: OrganisationId,
        audit: &AuditContext,
    ) -> Result<Vec<StoppedKey>, ManageKeysError>;

    /// Resumes the keys that were paused by this stop and have not been resumed since, unless they are over, and
    /// records it. Empty: there was none, and nothing was recorded.
    async fn resume_stopped(
        &self,
        organisation: OrganisationId,
        stop: AuditEntryId,
        audit: &AuditContext,
    ) -> Result<Vec<StoppedKey>, ManageKeysError>;

    /// The stops of which keys can be resumed, the latest first.
    async fn stops(&self, organisation: OrganisationId) -> Result<Vec<KeyStop>, StoreError>;
}
