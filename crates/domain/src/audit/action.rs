//! Actions, and who does them.

use crate::audit::kind::ActionKind;
use crate::email_address::EmailAddress;
use crate::ids::MemberId;
use crate::key_note::KeyNote;
use crate::name::Name;

/// Declares the actions: each with the name that it is stored under, its kind, and its phrase for people.
macro_rules! actions {
    ($($(#[$doc:meta])* $action:ident = $name:literal in $kind:ident: $phrase:literal,)*) => {
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

            /// Its subject area.
            #[must_use]
            pub fn kind(self) -> ActionKind {
                match self {
                    $(Self::$action => ActionKind::$kind,)*
                }
            }

            /// The words between the actor and the subject, for people.
            #[must_use]
            pub fn phrase(self) -> &'static str {
                match self {
                    $(Self::$action => $phrase,)*
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
    MemberInvited = "member_invited" in Members: "invited",
    /// An invitation was withdrawn before it was accepted.
    InvitationWithdrawn = "invitation_withdrawn" in Members: "withdrew the invitation for",
    /// An invitation was accepted.
    MemberJoined = "member_joined" in Members: "joined as",
    /// A member was removed, and signed out everywhere.
    MemberRemoved = "member_removed" in Members: "removed",
    /// A member was made an administrator.
    AdministratorMade = "administrator_made" in Members: "made an administrator of",
    /// A member was made a key manager.
    KeyManagerMade = "key_manager_made" in Members: "made a key manager of",
    /// A member was made an auditor.
    AuditorMade = "auditor_made" in Members: "made an auditor of",
    /// An operator made the organisation, which is the subject.
    OrganisationCreated = "organisation_created" in Organisation: "created the organisation",
    /// An operator gave the organisation another name: the subject is the old name and the new one.
    OrganisationRenamed = "organisation_renamed" in Organisation: "renamed the organisation",
    /// The time zone of the organisation was changed: the subject is its name, the old zone and the new one.
    OrganisationZoneChanged = "organisation_zone_changed" in Organisation: "changed the time zone of",
    /// An operator suspended the organisation: its keys are refused.
    OrganisationSuspended = "organisation_suspended" in Organisation: "suspended the organisation",
    /// An operator resumed the organisation: its keys are accepted again.
    OrganisationResumed = "organisation_resumed" in Organisation: "resumed the organisation",
    /// An operator closed the organisation for good: its keys were revoked and its members removed.
    OrganisationClosed = "organisation_closed" in Organisation: "closed the organisation",
    /// An operator erased the patients of the closed organisation: the subject says how many.
    OrganisationErased = "organisation_erased" in Organisation: "erased from the closed organisation",
    /// An operator said that the register, which was restored or moved, is whole: the subject is the time of its newest
    /// entry then.
    RegisterRestored = "register_restored" in Organisation: "restored the register as of",
    /// An operator migrated the register's schema: the subject names the migrations.
    RegisterMigrated = "register_migrated" in Organisation: "updated the database schema by",
    /// An operator let a database role read patients: the subject is the role.
    ReaderGranted = "reader_granted" in Organisation: "granted reading of patients to the database role",
    /// Two-step sign-in became a duty of every member of the organisation, which is the subject.
    SecondFactorRequired = "second_factor_required" in Members: "required two-step sign-in for everyone in",
    /// Two-step sign-in is every member's own decision again.
    SecondFactorOptional = "second_factor_optional" in Members: "stopped requiring two-step sign-in in",
    /// A member changed their name: the subject is the new one.
    NameChanged = "name_changed" in Accounts: "changed their name to",
    /// A member changed their email address, which ended their other sessions: the subject is the new one.
    EmailChanged = "email_changed" in Accounts: "changed their email to",
    /// A member asked to sign in with another email address, which they have to confirm: the subject is the new one.
    EmailChangeRequested = "email_change_requested" in Accounts: "asked to change their email to",
    /// A member changed their password, which ended their other sessions.
    PasswordChanged = "password_changed" in Accounts: "changed the password of",
    /// A reset link was made for a member who forgot the password.
    PasswordResetIssued = "password_reset_issued" in Accounts: "created a password reset link for",
    /// Someone who said that they forgot the password had a reset link mailed to a member.
    PasswordResetRequested = "password_reset_requested" in Accounts: "asked for a password reset link for",
    /// A member's password was changed by a reset link, which signed them out everywhere.
    PasswordReset = "password_reset" in Accounts: "reset the password of",
    /// The same, and all passkeys of the member were removed.
    PasswordAndPasskeysReset = "password_and_passkeys_reset" in Accounts: "reset the password and removed all passkeys of",
    /// A member signed in.
    SignedIn = "signed_in" in SignIns: "signed in as",
    /// A member signed in with a recovery code instead of the authenticator app.
    SignedInByRecoveryCode = "signed_in_by_recovery_code" in SignIns: "signed in with a recovery code as",
    /// A member signed in by a passkey, after the password or without it.
    SignedInByPasskey = "signed_in_by_passkey" in SignIns: "signed in with a passkey as",
    /// A member signed in with the provider of single sign-on, with a code where they have a second factor.
    SignedInByProvider = "signed_in_by_provider" in SignIns: "signed in by single sign-on as",
    /// A member's account was linked to a person at the provider of single sign-on.
    ProviderLinked = "provider_linked" in Accounts: "linked single sign-on to",
    /// A person at the provider came with the address of a member whose account is linked to another person there.
    ProviderPersonRefused = "provider_person_refused" in SignIns: "was refused single sign-on, as another person with the email",
    /// An operator confirmed a member's address, so that single sign-on finds the account.
    AddressConfirmed = "address_confirmed" in Accounts: "confirmed the email of",
    /// A wrong password was given for a member.
    SignInFailed = "sign_in_failed" in SignIns: "entered an incorrect password for",
    /// The right password was given for a member, and a wrong code.
    CodeFailed = "code_failed" in SignIns: "entered an incorrect code for",
    /// A member asked for something that the role does not allow: the subject is its route.
    RoleRefused = "role_refused" in Members: "was not allowed by their role to use",
    /// A member sent a form that does not come from a page of the session: the subject is its route.
    FormRefused = "form_refused" in Members: "sent an outdated form to",
    /// A member ended the session they were in.
    SignedOut = "signed_out" in SignIns: "signed out as",
    /// A member ended another of their sessions.
    SessionEnded = "session_ended" in SignIns: "signed out another session of",
    /// A member ended all of their other sessions.
    OtherSessionsEnded = "other_sessions_ended" in SignIns: "signed out all other sessions of",
    /// An administrator ended a colleague's sessions.
    SessionsEnded = "sessions_ended" in SignIns: "ended the sessions of",
    /// A member turned two-step sign-in on.
    SecondFactorTurnedOn = "second_factor_turned_on" in Accounts: "turned on two-step sign-in for",
    /// A member or an operator turned a member's two-step sign-in off.
    SecondFactorTurnedOff = "second_factor_turned_off" in Accounts: "turned off two-step sign-in for",
    /// A member's recovery codes were replaced; the old ones no longer work.
    RecoveryCodesReplaced = "recovery_codes_replaced" in Accounts: "created new recovery codes for",
    /// A member added a passkey: the subject is its name.
    PasskeyAdded = "passkey_added" in Accounts: "added the passkey",
    /// A member removed a passkey: the subject is its name.
    PasskeyRemoved = "passkey_removed" in Accounts: "removed the passkey",
    /// A key was made: the subject is its name, and the networks from which it is accepted, if they are limited.
    KeyCreated = "key_created" in Keys: "created the key",
    /// A key was made to replace another: the subject is as for a new key.
    KeyReplaced = "key_replaced" in Keys: "created a replacement for the key",
    /// A key was revoked.
    KeyRevoked = "key_revoked" in Keys: "revoked the key",
    /// A key was paused: it is refused until it is resumed.
    KeyPaused = "key_paused" in Keys: "paused the key",
    /// A key was resumed: it is accepted again.
    KeyResumed = "key_resumed" in Keys: "resumed the key",
    /// All keys that were accepted were paused together: the subject says how many. Each has an entry of its own.
    KeysStopped = "key_all_stopped" in Keys: "stopped all keys:",
    /// Keys that had been paused together were resumed together: the subject says how many.
    KeysResumed = "key_all_resumed" in Keys: "resumed keys that were stopped together:",
    /// The networks from which a key is accepted were changed: the subject is its name, the old and the new ones.
    KeyNetworksChanged = "key_networks_changed" in Keys: "changed the allowed networks of the key",
    /// The maximum age of an organisation's keys was changed: the subject is its name, the old and the new age.
    KeyAgeLimited = "key_age_limited" in Keys: "changed the longest life of keys of",
    /// A key was renamed: the subject is the old name and the new one.
    KeyRenamed = "key_renamed" in Keys: "renamed the key",
    /// The note about a key was changed.
    KeyNoted = "key_noted" in Keys: "changed the note about the key",
    /// The contact of a key was changed: whom to call about it.
    KeyContactChanged = "key_contact_changed" in Keys: "changed the vendor contact of the key",
    /// An operator looked at what is stored about a patient: the subject is the patient's id.
    PatientShown = "patient_shown" in Patients: "viewed patient",
    /// A patient was erased: the subject is the patient's id.
    PatientErased = "patient_erased" in Patients: "erased the patient",
    /// Patients were exported: the actor is the database role that reads, the subject says how many.
    PatientsExported = "patients_exported" in Patients: "exported",
    /// An operator removed a key's mark that it was sent in clear.
    KeyMarkCleared = "key_mark_cleared" in Keys: "cleared the warning that it was sent unencrypted from the key",
}

impl Action {
    /// Returns whether it changes neither keys nor who gets in.
    #[must_use]
    pub fn is_harmless(self) -> bool {
        matches!(
            self,
            Self::SignedIn
                | Self::SignedInByRecoveryCode
                | Self::SignedInByPasskey
                | Self::SignedInByProvider
                | Self::SignInFailed
                | Self::CodeFailed
                | Self::ProviderPersonRefused
                | Self::RoleRefused
                | Self::FormRefused
                | Self::SignedOut
                | Self::NameChanged
                | Self::PatientShown
                | Self::PatientsExported
                | Self::RegisterRestored
                | Self::RegisterMigrated
        )
    }
}

impl ActionKind {
    /// The actions of this kind.
    pub fn actions(self) -> impl Iterator<Item = Action> {
        Action::ALL.iter().copied().filter(move |action| action.kind() == self)
    }
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

    #[test]
    fn every_action_is_of_one_kind() {
        assert_eq!(ActionKind::ALL.map(|kind| kind.actions().count()).iter().sum::<usize>(), Action::ALL.len());
        assert!(ActionKind::Keys.actions().all(|action| action.as_str().starts_with("key_")));
    }
}
