//! The port to the rules of organisations: how long keys may work, and the zone of days and times.

use async_trait::async_trait;

use crate::accounts::member_store::AdministerError;
use crate::audit::context::AuditContext;
use crate::ids::{MemberId, OrganisationId};
use crate::keys::key_age::KeyAge;
use crate::store_error::StoreError;
use crate::zone::Zone;

/// The rules of organisations.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait RulesStore: Send + Sync {
    /// Sets the maximum age of the organisation's keys, none for no limit, and records the old and the new one. Keys
    /// that exist keep their end.
    async fn limit_key_age(
        &self,
        organisation: OrganisationId,
        age: Option<KeyAge>,
        audit: &AuditContext,
    ) -> Result<(), AdministerError>;

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
