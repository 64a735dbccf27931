//! The port to the time zones of organisations.

use async_trait::async_trait;

use crate::audit::context::AuditContext;
use crate::ids::{MemberId, OrganisationId};
use crate::store_error::StoreError;
use crate::zone::Zone;

/// Outcome of an attempt to change the time zone of an organisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum ChangeZoneOutcome {
    /// It is so from now on, or was so before.
    Decided,
    /// The member is no administrator.
    NotAdministrator,
}

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
    ) -> Result<ChangeZoneOutcome, StoreError>;

    /// The zone that all organisations of a person have in common. They have none: UTC.
    async fn zone_of(&self, person: MemberId) -> Result<Zone, StoreError>;
}
