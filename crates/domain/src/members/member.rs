//! The people of an organisation who look after its keys.

use crate::audit::action::Actor;
use crate::email_address::EmailAddress;
use crate::ids::{MemberId, OrganisationId};
use crate::members::role::Role;
use crate::name::Name;

/// A member of one organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// A UUID version 7: sorts by when the member joined.
    pub id: MemberId,
    /// The one organisation that the member belongs to.
    pub organisation_id: OrganisationId,
    /// The name that other members see.
    pub name: Name,
    /// The address that the member signs in with.
    pub email: EmailAddress,
    /// What the member may do.
    pub role: Role,
}

impl Member {
    /// The member, as the actor of a deed.
    #[must_use]
    pub fn actor(&self) -> Actor {
        Actor::Member(self.id, self.name.to_string())
    }
}
