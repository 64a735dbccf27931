//! The port to the networks from which keys are accepted.

use async_trait::async_trait;

use crate::audit::context::AuditContext;
use crate::ids::{KeyId, OrganisationId};
use crate::keys::allowed_networks::AllowedNetworks;
use crate::keys::manage_error::ManageKeysError;

/// The networks from which keys are accepted.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait AllowedNetworksStore: Send + Sync {
    /// Sets the networks from which a key is accepted, and records the old and the new ones. Once this has returned, no
    /// request that starts afterwards from elsewhere creates anything with it. If an organisation is given, only its
    /// keys are found. Returns false if they were the same before. Fails with [`ManageKeysError::NoSuchKey`],
    /// [`ManageKeysError::KeyIsOver`] or [`ManageKeysError::Store`].
    async fn set_allowed_networks(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        networks: &AllowedNetworks,
        audit: &AuditContext,
    ) -> Result<bool, ManageKeysError>;
}
