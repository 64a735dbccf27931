//! Who does something, from where, and when.

use std::net::IpAddr;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::audit::action::Actor;
use crate::browser::Browser;
use crate::ids::{AuditEntryId, KeyId};
use crate::token::TokenDigest;

/// Source and time of an action whose actor is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The id of the audit entry that will record it.
    pub entry_id: AuditEntryId,
    /// The client's address, if it came over the network.
    pub address: Option<IpAddr>,
    /// The client's browser, if it named itself.
    pub browser: Option<Browser>,
    /// The session whose token the browser sent, if it sent one. A sign-in ends it.
    pub session: Option<TokenDigest>,
    /// The moment it is done, by the service's clock.
    pub at: OffsetDateTime,
}

impl Origin {
    /// The context of an action of this actor.
    #[must_use]
    pub fn by(self, actor: Actor) -> AuditContext {
        AuditContext { entry_id: self.entry_id, actor, address: self.address, at: self.at, confirmed_in: None }
    }
}

/// Who does something, from where, and when. Every change takes it and records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditContext {
    /// The id of the audit entry that records it.
    pub entry_id: AuditEntryId,
    /// Who does it.
    pub actor: Actor,
    /// The client's address, if it came over the network.
    pub address: Option<IpAddr>,
    /// The moment it is done, by the service's clock.
    pub at: OffsetDateTime,
    /// The session in which the member confirmed who they are. Nothing is changed once it ended or that is too old.
    pub confirmed_in: Option<TokenDigest>,
}

impl AuditContext {
    /// The context of a second entry about the same change.
    #[must_use]
    pub fn second(&self) -> Self {
        // The same each time that the change is repeated.
        let beside = Uuid::from_u128(self.entry_id.as_uuid().as_u128() ^ 1);
        Self { entry_id: beside.into(), ..self.clone() }
    }

    /// The context of the entry about one key of a change of many.
    #[must_use]
    pub fn of_key(&self, key: KeyId) -> Self {
        // The same each time that the change is repeated, and of its moment: only the random bits differ.
        let random = key.as_uuid().as_u128() & u128::from(u64::MAX >> 2);
        let entry = Uuid::from_u128(self.entry_id.as_uuid().as_u128() ^ random);
        Self { entry_id: entry.into(), ..self.clone() }
    }
}
