//! The port that reads the audit log. Entries are written by the other ports, each in the transaction of its change.

use async_trait::async_trait;

use crate::audit::action::AuditEntry;
use crate::ids::{AuditEntryId, OrganisationId};
use crate::store_error::StoreError;

/// The audit log.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Up to `limit` entries of the organisation, newest first; with `before`, only those older than that entry.
    async fn entries(
        &self,
        organisation: OrganisationId,
        before: Option<AuditEntryId>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError>;
}
