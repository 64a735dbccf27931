//! The port to the record of deeds. It is read here; it is written along with each deed.

use async_trait::async_trait;

use crate::audit::deed::AuditEntry;
use crate::ids::{AuditEntryId, OrganisationId};
use crate::store_error::StoreError;

/// The record.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// So many entries of the organisation, the newest first, older than the given one.
    async fn entries(
        &self,
        organisation: OrganisationId,
        before: Option<AuditEntryId>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError>;
}
