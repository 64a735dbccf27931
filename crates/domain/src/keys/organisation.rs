//! An organisation: the tenant that owns keys and patients.

use crate::ids::OrganisationId;
use crate::name::Name;

/// A tenant of the service, to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organisation {
    /// A UUID version 7: sorts by creation.
    pub id: OrganisationId,
    /// The name its members see; two organisations may share one.
    pub name: Name,
}
