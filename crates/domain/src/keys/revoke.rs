//! The port that revokes keys.

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::audit::context::AuditContext;
use crate::ids::{KeyId, OrganisationId};
use crate::store_error::StoreError;

/// Outcome of an attempt to revoke a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevokeOutcome {
    /// The key is revoked, by this call or an earlier one.
    Revoked {
        /// Time at which it was first revoked, by the store's clock: not before the last use that was allowed.
        at: OffsetDateTime,
    },
    /// There is no such key, or it belongs to another organisation than the one asked for.
    NotFound,
}

/// Revokes keys.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait KeyRevocationStore: Send + Sync {
    /// Revokes a key for good, and records the change with it. Once this has returned, no request that starts
    /// afterwards creates anything with it. If an organisation is given, only its keys are found.
    async fn revoke(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        audit: &AuditContext,
    ) -> Result<RevokeOutcome, StoreError>;
}
