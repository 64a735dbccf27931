//! The port that revokes keys.

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::audit::context::AuditContext;
use crate::ids::{KeyId, OrganisationId};
use crate::keys::manage_error::ManageKeysError;

/// Outcome of the revocation of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum RevokeOutcome {
    /// The key was revoked by this call.
    Revoked {
        /// Time of the revocation, by the store's clock: not before the last use that was allowed.
        at: OffsetDateTime,
    },
    /// The key had been revoked before; nothing was recorded.
    AlreadyRevoked {
        /// Time of that revocation.
        at: OffsetDateTime,
    },
}

/// Revokes keys.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait KeyRevocationStore: Send + Sync {
    /// Revokes a key for good, and records the change with it. Once this has returned, no request that starts
    /// afterwards creates anything with it. If an organisation is given, only its keys are found. Fails with
    /// [`ManageKeysError::NoSuchKey`] or [`ManageKeysError::Store`].
    async fn revoke(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        audit: &AuditContext,
    ) -> Result<RevokeOutcome, ManageKeysError>;
}
