//! The record of who did what: written in the same transaction as the deed, never changed afterwards.

use std::net::IpAddr;

use time::OffsetDateTime;

use crate::ids::{AuditEntryId, MemberId, OrganisationId};

/// Declares the actions and the names that they are stored under: one without a name does not compile.
macro_rules! actions {
    ($($(#[$doc:meta])* $action:ident = $name:literal,)*) => {
        /// What was done.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Action {
            $($(#[$doc])* $action,)*
        }

        impl Action {
            /// The name it is stored under.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$action => $name,)*
                }
            }

            fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$action),)*
                    _ => None,
                }
            }
        }
    };
}

actions! {
    /// Somebody was invited.
    MemberInvited = "member_invited",
    /// An invitation was taken back before it was accepted.
    InvitationWithdrawn = "invitation_withdrawn",
    /// An invitation was accepted.
    MemberJoined = "member_joined",
    /// A member was removed, and signed out everywhere.
    MemberRemoved = "member_removed",
    /// A member signed in.
    SignedIn = "signed_in",
    /// A member signed in with a recovery code in place of its authenticator app.
    SignedInByRecoveryCode = "signed_in_by_recovery_code",
    /// A wrong password was given for a member.
    SignInFailed = "sign_in_failed",
    /// The right password was given for a member, and a wrong code.
    CodeFailed = "code_failed",
    /// A member ended a session, or all of them.
    SignedOut = "signed_out",
    /// From now on a member signs in with a code too.
    SecondFactorTurnedOn = "second_factor_turned_on",
    /// From now on a member signs in by password alone.
    SecondFactorTurnedOff = "second_factor_turned_off",
    /// A member took new recovery codes; the old ones are worth nothing.
    RecoveryCodesReplaced = "recovery_codes_replaced",
    /// A key was made.
    KeyCreated = "key_created",
    /// A key was made that takes the place of another.
    KeyReplaced = "key_replaced",
    /// A key was revoked.
    KeyRevoked = "key_revoked",
}

/// What was done, as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedAction {
    /// One of those that this program knows.
    Known(Action),
    /// The stored name of one that it does not know: recorded by a newer program. Nothing in the record is hidden.
    Unknown(String),
}

impl RecordedAction {
    /// The action stored under that name.
    #[must_use]
    pub fn named(name: String) -> Self {
        Action::named(&name).map_or(Self::Unknown(name), Self::Known)
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

/// From where and when something is done, before it is known who does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The id of the audit entry that will record it.
    pub entry_id: AuditEntryId,
    /// The client's address, if it came over the network.
    pub address: Option<IpAddr>,
    /// The moment it is done, by the service's clock.
    pub at: OffsetDateTime,
}

impl Origin {
    /// The deed of this actor.
    #[must_use]
    pub fn by(self, actor: Actor) -> Deed {
        let Self { entry_id, address, at } = self;
        Deed { entry_id, actor, address, at }
    }
}

/// Who does something, from where, and when: passed along with every change, which records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// The id of the audit entry that records it.
    pub entry_id: AuditEntryId,
    /// Who does it.
    pub actor: Actor,
    /// The client's address, if it came over the network.
    pub address: Option<IpAddr>,
    /// The moment it is done, by the service's clock.
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
    pub action: RecordedAction,
    /// The name of who did it; none: an operator or a stranger.
    pub actor: Option<String>,
    /// To whom or what: a key's name, a member's email address.
    pub subject: String,
    /// From which address.
    pub address: Option<String>,
    /// In whose organisation.
    pub organisation_id: OrganisationId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_found_by_the_name_it_is_stored_under_and_an_unknown_one_is_kept() {
        for action in [Action::MemberInvited, Action::InvitationWithdrawn, Action::KeyRevoked] {
            assert_eq!(RecordedAction::named(action.as_str().to_owned()), RecordedAction::Known(action));
        }
        assert_eq!(RecordedAction::named("key_lent".to_owned()), RecordedAction::Unknown("key_lent".to_owned()));
    }
}
