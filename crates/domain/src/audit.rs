//! The record of who did what: written in the same transaction as the deed, never changed afterwards.

use std::net::IpAddr;

use time::OffsetDateTime;

use crate::ids::{AuditEntryId, MemberId, OrganisationId};

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Somebody was invited.
    MemberInvited,
    /// An invitation was accepted.
    MemberJoined,
    /// A member was removed, and signed out everywhere.
    MemberRemoved,
    /// A member signed in.
    SignedIn,
    /// A member signed in with a recovery code in place of its authenticator app.
    SignedInByRecoveryCode,
    /// A wrong password was given for a member.
    SignInFailed,
    /// The right password was given for a member, and a wrong code.
    CodeFailed,
    /// A member ended a session, or all of them.
    SignedOut,
    /// From now on a member signs in with a code too.
    SecondFactorTurnedOn,
    /// From now on a member signs in by password alone.
    SecondFactorTurnedOff,
    /// A member took new recovery codes; the old ones are worth nothing.
    RecoveryCodesReplaced,
    /// A key was made.
    KeyCreated,
    /// A key was made that takes the place of another.
    KeyReplaced,
    /// A key was revoked.
    KeyRevoked,
}

impl Action {
    /// Every action, with the name it is stored under.
    const NAMES: [(Self, &'static str); 14] = [
        (Self::MemberInvited, "member_invited"),
        (Self::MemberJoined, "member_joined"),
        (Self::MemberRemoved, "member_removed"),
        (Self::SignedIn, "signed_in"),
        (Self::SignedInByRecoveryCode, "signed_in_by_recovery_code"),
        (Self::SignInFailed, "sign_in_failed"),
        (Self::CodeFailed, "code_failed"),
        (Self::SignedOut, "signed_out"),
        (Self::SecondFactorTurnedOn, "second_factor_turned_on"),
        (Self::SecondFactorTurnedOff, "second_factor_turned_off"),
        (Self::RecoveryCodesReplaced, "recovery_codes_replaced"),
        (Self::KeyCreated, "key_created"),
        (Self::KeyReplaced, "key_replaced"),
        (Self::KeyRevoked, "key_revoked"),
    ];

    /// The name it is stored under.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(action, _)| *action == self).map_or("", |(_, name)| name)
    }

    /// The action of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(action, _)| *action)
    }
}

/// Who did something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// An operator, on the command line.
    Operator,
    /// A member, by the name it had then.
    Member(MemberId, String),
    /// Somebody who did not prove to be anyone.
    Stranger,
}

/// Who does something, from where, and when: what every change brings along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// Of the entry that records it.
    pub entry_id: AuditEntryId,
    /// Who does it.
    pub actor: Actor,
    /// From which address, if it came over the network.
    pub address: Option<IpAddr>,
    /// When.
    pub at: OffsetDateTime,
}

/// One line of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Ids grow with time: the newest is the largest.
    pub id: AuditEntryId,
    /// When.
    pub at: OffsetDateTime,
    /// What.
    pub action: Action,
    /// The name of who did it; none: an operator or a stranger.
    pub actor: Option<String>,
    /// To whom or what: a key's name, a member's email address.
    pub subject: String,
    /// From which address.
    pub address: Option<String>,
    /// In whose organisation.
    pub organisation_id: OrganisationId,
}
