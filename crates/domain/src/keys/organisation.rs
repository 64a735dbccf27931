//! An organisation: the tenant that owns keys and patients.

use time::OffsetDateTime;

use crate::ids::OrganisationId;
use crate::keys::key_age::KeyAge;
use crate::name::Name;
use crate::zone::Zone;

/// A tenant of the service, to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organisation {
    /// A UUID version 7: sorts by creation.
    pub id: OrganisationId,
    /// The name its members see; two organisations may share one.
    pub name: Name,
}

/// A stored organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrganisationRecord {
    /// A UUID version 7: sorts by creation.
    pub id: OrganisationId,
    /// The name its members see.
    pub name: String,
    /// Since when its keys are refused; none: they are not, or it is closed.
    pub suspended_at: Option<OffsetDateTime>,
    /// Time at which it was closed, for good; none: it is open.
    pub closed_at: Option<OffsetDateTime>,
    /// The longest time for which its keys may be made.
    pub key_age_max: Option<KeyAge>,
    /// The zone in which its members see days and times.
    pub zone: Zone,
}
