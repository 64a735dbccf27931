//! A tenant of the service.

use crate::ids::OrganisationId;
use crate::name::Name;

/// A tenant: owns keys and patients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organisation {
    /// Its id.
    pub id: OrganisationId,
    /// Its name.
    pub name: Name,
}
