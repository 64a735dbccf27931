//! The port to the time zones of organisations.

use async_trait::async_trait;

use crate::accounts::member_store::AdministerError;
use crate::audit::context::AuditContext;
use crate::ids::{MemberId, OrganisationId};
use crate::store_error::StoreError;
use crate::zone::Zone;

/// The time zones of organisations.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait ZoneStore: Send + Sync {
    /// Changes the zone in which the organisation's members see days and times, and records the old and the new one.
    async fn change_zone(
        &self,
        organisation: OrganisationId,
        zone: Zone,
        audit: &AuditContext,
    ) -> Result<(), AdministerError>;

    /// The zone that all organisations of a person have in common. They have none: UTC.
    async fn zone_of(&self, person: MemberId) -> Result<Zone, StoreError>;
}
