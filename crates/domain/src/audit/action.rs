//! Actions, and who does them.

use crate::email_address::EmailAddress;
use crate::ids::MemberId;
use crate::key_note::KeyNote;
use crate::name::Name;

/// Declares the actions and the names that they are stored under: one without a name does not compile.
macro_rules! actions {
    ($($(#[$doc:meta])* $action:ident = $name:literal,)*) => {
        /// Actions that this program knows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Action {
            $($(#[$doc])* $action,)*
        }

        impl Action {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$action,)*];

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
    /// A guest was invited.
    MemberInvited = "member_invited",
    /// An invitation was withdrawn before it was accepted.
    InvitationWithdrawn = "invitation_withdrawn",
    /// An invitation was accepted.
    MemberJoined = "member_joined",
    /// A member was removed, and signed out everywhere.
    MemberRemoved = "member_removed",
    /// A member was made an administrator.
    AdministratorMade = "administrator_made",
    /// A member was made a key manager.
    KeyManagerMade = "key_manager_made",
    /// A member was made an auditor.
    AuditorMade = "auditor_made",
    /// An operator made the organisation, which is the subject.
    OrganisationCreated = "organisation_created",
    /// An operator gave the organisation another name: the subject is the old name and the new one.
    OrganisationRenamed = "organisation_renamed",
    /// An operator suspended the organisation: its keys are refused.
    OrganisationSuspended = "organisation_suspended",
    /// An operator resumed the organisation: its keys are accepted again.
    OrganisationResumed = "organisation_resumed",
    /// An operator closed the organisation for good: its keys were revoked and its members removed.
    OrganisationClosed = "organisation_closed",
    /// An operator erased the patients of the closed organisation: the subject says how many.
    OrganisationErased = "organisation_erased",
    /// An operator said that the register, which was restored or moved, is whole: the subject is the time of its newest
    /// entry then.
    RegisterRestored = "register_restored",
    /// An operator migrated the register's schema: the subject names the migrations.
    RegisterMigrated = "register_migrated",
    /// Two-step sign-in became a duty of every member of the organisation, which is the subject.
    SecondFactorRequired = "second_factor_required",
    /// Two-step sign-in is every member's own decision again.
    SecondFactorOptional = "second_factor_optional",
    /// A member changed their name: the subject is the new one.
    NameChanged = "name_changed",
    /// A member changed their email address, which ended their other sessions: the subject is the new one.
    EmailChanged = "email_changed",
    /// A member asked to sign in with another email address, which they have to confirm: the subject is the new one.
    EmailChangeRequested = "email_change_requested",
    /// A member changed their password, which ended their other sessions.
    PasswordChanged = "password_changed",
    /// A reset link was made for a member who forgot the password.
    PasswordResetIssued = "password_reset_issued",
    /// Someone who said that they forgot the password had a reset link mailed to a member.
    PasswordResetRequested = "password_reset_requested",
    /// A member's password was changed by a reset link, which signed them out everywhere.
    PasswordReset = "password_reset",
    /// The same, and all passkeys of the member were removed.
    PasswordAndPasskeysReset = "password_and_passkeys_reset",
    /// A member signed in.
    SignedIn = "signed_in",
    /// A member signed in with a recovery code instead of the authenticator app.
    SignedInByRecoveryCode = "signed_in_by_recovery_code",
    /// A member signed in by a passkey, after the password or without it.
    SignedInByPasskey = "signed_in_by_passkey",
    /// A member signed in with the provider of single sign-on, with a code where they have a second factor.
    SignedInByProvider = "signed_in_by_provider",
    /// A member's account was linked to a person at the provider of single sign-on.
    ProviderLinked = "provider_linked",
    /// A person at the provider came with the address of a member whose account is linked to another person there.
    ProviderPersonRefused = "provider_person_refused",
    /// An operator confirmed a member's address, so that single sign-on finds the account.
    AddressConfirmed = "address_confirmed",
    /// A wrong password was given for a member.
    SignInFailed = "sign_in_failed",
    /// The right password was given for a member, and a wrong code.
    CodeFailed = "code_failed",
    /// A member asked for something that the role does not allow: the subject is its route.
    RoleRefused = "role_refused",
    /// A member sent a form that does not come from a page of the session: the subject is its route.
    FormRefused = "form_refused",
    /// A member ended the session they were in.
    SignedOut = "signed_out",
    /// A member ended another of their sessions.
    SessionEnded = "session_ended",
    /// A member ended all of their other sessions.
    OtherSessionsEnded = "other_sessions_ended",
    /// An administrator ended a colleague's sessions.
    SessionsEnded = "sessions_ended",
    /// A member turned two-step sign-in on.
    SecondFactorTurnedOn = "second_factor_turned_on",
    /// A member or an operator turned a member's two-step sign-in off.
    SecondFactorTurnedOff = "second_factor_turned_off",
    /// A member's recovery codes were replaced; the old ones no longer work.
    RecoveryCodesReplaced = "recovery_codes_replaced",
    /// A member added a passkey: the subject is its name.
    PasskeyAdded = "passkey_added",
    /// A member removed a passkey: the subject is its name.
    PasskeyRemoved = "passkey_removed",
    /// A key was made: the subject is its name, and the networks from which it is accepted, if they are limited.
    KeyCreated = "key_created",
    /// A key was made to replace another: the subject is as for a new key.
    KeyReplaced = "key_replaced",
    /// A key was revoked.
    KeyRevoked = "key_revoked",
    /// A key was paused: it is refused until it is resumed.
    KeyPaused = "key_paused",
    /// A key was resumed: it is accepted again.
    KeyResumed = "key_resumed",
    /// All keys that were accepted were paused together: the subject says how many. Each has an entry of its own.
    KeysStopped = "key_all_stopped",
    /// Keys that had been paused together were resumed together: the subject says how many.
    KeysResumed = "key_all_resumed",
    /// The networks from which a key is accepted were changed: the subject is its name, the old and the new ones.
    KeyNetworksChanged = "key_networks_changed",
    /// The maximum age of an organisation's keys was changed: the subject is its name, the old and the new age.
    KeyAgeLimited = "key_age_limited",
    /// A key was renamed: the subject is the old name and the new one.
    KeyRenamed = "key_renamed",
    /// The note about a key was changed.
    KeyNoted = "key_noted",
    /// An operator looked at what is stored about a patient: the subject is the patient's id.
    PatientShown = "patient_shown",
    /// A patient was erased: the subject is the patient's id.
    PatientErased = "patient_erased",
    /// Patients were exported: the actor is the database role that reads, the subject says how many.
    PatientsExported = "patients_exported",
    /// An operator removed a key's mark that it was sent in clear.
    KeyMarkCleared = "key_mark_cleared",
}

/// Action as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedAction {
    /// An action that this program knows.
    Known(Action),
    /// The stored name of an action that a newer program recorded. It is shown, because nothing in the log is hidden.
    Unknown(String),
}

impl RecordedAction {
    /// The action stored under that name.
    #[must_use]
    pub fn named(name: String) -> Self {
        Action::named(&name).map_or(Self::Unknown(name), Self::Known)
    }

    /// Who did this, if nobody is named: strangers do a few things only.
    #[must_use]
    pub fn unnamed_actor(&self) -> RecordedActor {
        match self {
            Self::Known(
                Action::SignInFailed
                | Action::CodeFailed
                | Action::PasswordReset
                | Action::PasswordResetRequested
                | Action::ProviderPersonRefused,
            )
            | Self::Unknown(_) => RecordedActor::Stranger,
            Self::Known(_) => RecordedActor::Operator(None),
        }
    }
}

/// Who did something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// An operator, on the command line.
    Operator(Operator),
    /// A member, with the name and the email address of that moment.
    Member {
        /// Stays when name and address change.
        id: MemberId,
        /// The name that other members see.
        name: Name,
        /// The address that the member signs in with.
        email: EmailAddress,
    },
    /// Someone who has not proved who they are.
    Stranger,
}

/// Who runs a command, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operator {
    /// The operator's account on the machine, or the name that was given instead. None: neither is known.
    pub name: Option<Name>,
    /// The reason that was given.
    pub reason: KeyNote,
}

/// Who did something, as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedActor {
    /// An operator, by name. Entries of earlier programs have none.
    Operator(Option<String>),
    /// A member, with the name and the email address of that moment. Entries of earlier programs have no address.
    Member {
        /// Stays when name and address change. Entries of earlier programs have none.
        id: Option<MemberId>,
        /// The name that other members saw.
        name: String,
        /// The address that the member signed in with.
        email: Option<String>,
    },
    /// Someone who had not proved who they were.
    Stranger,
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
