//! An entry of the audit log in words.

use intake_domain::{Action, AuditEntry, RecordedAction};

use crate::page::moment::exact;

/// A row of the table.
pub(crate) struct EntryRow {
    pub(crate) at: String,
    pub(crate) actor: String,
    pub(crate) action: String,
    pub(crate) subject: String,
    pub(crate) address: String,
}

impl From<AuditEntry> for EntryRow {
    fn from(entry: AuditEntry) -> Self {
        Self {
            at: exact(entry.at),
            actor: actor(&entry).to_owned(),
            action: phrase(&entry.action),
            subject: entry.subject,
            address: entry.address.unwrap_or_default(),
        }
    }
}

/// Who did it.
pub(crate) fn actor(entry: &AuditEntry) -> &str {
    let nobody = match entry.action {
        RecordedAction::Known(Action::SignInFailed | Action::CodeFailed | Action::PasswordReset)
        | RecordedAction::Unknown(_) => "Someone",
        RecordedAction::Known(_) => "An operator",
    };
    entry.actor.as_deref().unwrap_or(nobody)
}

/// What was done, before the name of what it was done to.
pub(crate) fn phrase(action: &RecordedAction) -> String {
    match action {
        RecordedAction::Known(action) => known(*action).to_owned(),
        RecordedAction::Unknown(name) => name.replace('_', " ") + ":",
    }
}

fn known(action: Action) -> &'static str {
    match action {
        Action::MemberInvited => "invited",
        Action::InvitationWithdrawn => "withdrew the invitation for",
        Action::MemberJoined => "joined as",
        Action::MemberRemoved => "removed",
        Action::AdministratorMade => "made an administrator of",
        Action::KeyManagerMade => "made a key manager of",
        Action::SecondFactorRequired => "required two-step sign-in of everyone in",
        Action::SecondFactorOptional => "stopped requiring two-step sign-in in",
        Action::NameChanged => "changed their name to",
        Action::EmailChanged => "changed their email to",
        Action::PasswordChanged => "changed the password of",
        Action::PasswordResetIssued => "created a password reset link for",
        Action::PasswordReset => "used the password reset link of",
        Action::SignedIn => "signed in as",
        Action::SignedInByRecoveryCode => "signed in with a recovery code as",
        Action::SignedInByPasskey => "signed in with a passkey as",
        Action::PasskeyAdded => "added the passkey",
        Action::PasskeyRemoved => "removed the passkey",
        Action::SignInFailed => "entered a wrong password for",
        Action::CodeFailed => "entered the right password but a wrong code for",
        Action::SignedOut => "signed out as",
        Action::SessionEnded => "ended another session of",
        Action::OtherSessionsEnded => "ended all other sessions of",
        Action::SecondFactorTurnedOn => "turned on two-step sign-in for",
        Action::SecondFactorTurnedOff => "turned off two-step sign-in for",
        Action::RecoveryCodesReplaced => "created new recovery codes for",
        Action::KeyCreated => "created the key",
        Action::KeyReplaced => "created a replacement for the key",
        Action::KeyRevoked => "revoked the key",
        Action::KeyRenamed => "renamed the key",
        Action::KeyMarkCleared => "cleared the warning that it was sent unencrypted from the key",
        Action::KeyNoted => "changed the note about the key",
        Action::PatientShown => "looked at the patient",
        Action::PatientErased => "erased the patient",
    }
}
