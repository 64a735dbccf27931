//! The port that changes whether keys are accepted, and from where.

use async_trait::async_trait;

use crate::audit::context::AuditContext;
use crate::ids::{AuditEntryId, KeyId, OrganisationId};
use crate::keys::allowed_networks::AllowedNetworks;
use crate::keys::manage_error::ManageKeysError;
use crate::keys::pause::{PauseOutcome, ResumeOutcome};
use crate::keys::revoke::RevokeOutcome;
use crate::keys::stop::{KeyStop, StoppedKey};
use crate::store_error::StoreError;

/// Changes whether keys are accepted, and from where. Once a change that forbids requests has returned, no such request
/// that starts afterwards creates anything.
///
/// Changes of one key fail with [`ManageKeysError::NoSuchKey`] or [`ManageKeysError::Store`], and find only the keys of
/// an organisation if one is given. Changes of all keys are for administrators and operators, and fail with
/// [`ManageKeysError::NotAdministrator`], [`ManageKeysError::NoSuchOrganisation`] or [`ManageKeysError::Store`].
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait KeyStateStore: Send + Sync {
    /// Pauses a key until it is resumed, and records it. Fails with [`ManageKeysError::KeyIsOver`], too.
    async fn pause(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        audit: &AuditContext,
    ) -> Result<PauseOutcome, ManageKeysError>;

    /// Resumes a key that was paused and is neither revoked nor expired, and records it. Fails with
    /// [`ManageKeysError::KeyIsOver`], too.
    async fn resume(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        audit: &AuditContext,
    ) -> Result<ResumeOutcome, ManageKeysError>;

    /// Revokes a key for good, and records the change with it.
    async fn revoke(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        audit: &AuditContext,
    ) -> Result<RevokeOutcome, ManageKeysError>;

    /// Sets the networks from which a key is accepted, and records the old and the new ones. Returns false if they were
    /// the same before. Fails with [`ManageKeysError::KeyIsOver`], too.
    async fn set_allowed_networks(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        networks: &AllowedNetworks,
        audit: &AuditContext,
    ) -> Result<bool, ManageKeysError>;

    /// Pauses every key that is neither paused nor over, and records it for each and for all. Empty: there was none,
    /// and nothing was recorded.
    async fn stop_all(
        &self,
        organisation: OrganisationId,
        audit: &AuditContext,
    ) -> Result<Vec<StoppedKey>, ManageKeysError>;

    /// Pauses those of these keys that are neither paused nor over together, and records it for each. Empty: there was
    /// none.
    async fn pause_together(
        &self,
        organisation: OrganisationId,
        keys: &[KeyId],
        audit: &AuditContext,
    ) -> Result<Vec<StoppedKey>, ManageKeysError>;

    /// Resumes the keys that were paused by this stop and have not been resumed since, unless they are over, and
    /// records it. Empty: there was none, and nothing was recorded. A stop of selected keys is for all who manage keys.
    async fn resume_stopped(
        &self,
        organisation: OrganisationId,
        stop: AuditEntryId,
        audit: &AuditContext,
    ) -> Result<Vec<StoppedKey>, ManageKeysError>;

    /// The stops of which keys can be resumed, the latest first.
    async fn stops(&self, organisation: OrganisationId) -> Result<Vec<KeyStop>, StoreError>;
}
