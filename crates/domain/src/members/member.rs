//! The people of an organisation who look after its keys.

use crate::audit::deed::Actor;
use crate::email_address::EmailAddress;
use crate::ids::{MemberId, OrganisationId};
use crate::name::Name;

/// A member of one organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub id: MemberId,
    /// The one organisation it belongs to.
    pub organisation_id: OrganisationId,
    /// As others see it.
    pub name: Name,
    /// By which it signs in.
    pub email: EmailAddress,
}

impl Member {
    /// The member as the one who does something.
    #[must_use]
    pub fn actor(&self) -> Actor {
        Actor::Member(self.id, self.name.to_string())
    }
}
