//! The people of an organisation who look after its keys. One person can belong to several organisations with one
//! account.

use time::OffsetDateTime;

use crate::accounts::role::Role;
use crate::audit::action::Actor;
use crate::email_address::EmailAddress;
use crate::ids::{MemberId, OrganisationId};
use crate::name::Name;
use crate::token::TokenDigest;

/// A person's account: the person signs in with it, whichever organisations they belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The same in all organisations of the person.
    pub id: MemberId,
    /// The name that other members see.
    pub name: Name,
    /// The address that the person signs in with.
    pub email: EmailAddress,
}

/// A person as a member of one organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The id of the person's account.
    pub id: MemberId,
    /// The organisation.
    pub organisation_id: OrganisationId,
    /// The name that other members see.
    pub name: Name,
    /// The address that the member signs in with.
    pub email: EmailAddress,
    /// Role of the member.
    pub role: Role,
}

/// Role of a person in one of their organisations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The organisation.
    pub organisation_id: OrganisationId,
    /// Its name.
    pub organisation_name: String,
    /// The person's role there.
    pub role: Role,
}

/// An open invitation, as its guest sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invitation {
    /// The organisation that the guest will join.
    pub organisation_id: OrganisationId,
    /// The guest's address.
    pub email: EmailAddress,
    /// The name of the organisation that the guest will join.
    pub organisation_name: String,
    /// Way in which the link got to the guest: by a mailed one, the guest has proved the address.
    pub delivery: LinkDelivery,
}

impl Account {
    /// The person, as an actor.
    #[must_use]
    pub fn actor(&self) -> Actor {
        Actor::Member { id: self.id, name: self.name.clone(), email: self.email.clone() }
    }
}

impl Member {
    /// The account of the member.
    #[must_use]
    pub fn account(&self) -> Account {
        Account { id: self.id, name: self.name.clone(), email: self.email.clone() }
    }

    /// The member, as an actor.
    #[must_use]
    pub fn actor(&self) -> Actor {
        Actor::Member { id: self.id, name: self.name.clone(), email: self.email.clone() }
    }
}

/// A one-time link of a member to be stored: to choose another password, or to confirm another address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMemberLink {
    /// The SHA-256 of the secret in the link.
    pub token: TokenDigest,
    /// Time at which the link stops working.
    pub expires_at: OffsetDateTime,
}

/// Way in which a reset link gets to its member, or an invitation to its guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkDelivery {
    /// It is shown to its creator, who passes it on.
    Shown,
    /// It is mailed to the address, and shown to nobody.
    Mailed,
}
