//! An entry of the audit log in words.

use intake_domain::{Action, AuditEntry, RecordedAction, RecordedActor};

use crate::members::with_article;
use crate::page::moment::{Moment, exact};

/// A row of the table.
pub(crate) struct EntryRow {
    pub(crate) at: Moment,
    pub(crate) actor: String,
    pub(crate) email: String,
    pub(crate) action: String,
    pub(crate) subject: String,
    /// The role of the subject, as it follows the subject.
    pub(crate) role: String,
    /// The last characters of the key that it is about, or nothing.
    pub(crate) key_hint: String,
    pub(crate) address: String,
    pub(crate) reason: String,
}

impl From<AuditEntry> for EntryRow {
    fn from(entry: AuditEntry) -> Self {
        Self {
            at: exact(entry.at),
            actor: actor(&entry.actor),
            email: email(&entry.actor).to_owned(),
            action: phrase(&entry.action),
            role: role(&entry),
            subject: entry.subject,
            key_hint: entry.key.map(|key| key.hint).unwrap_or_default(),
            address: entry.address.unwrap_or_default(),
            reason: entry.reason.unwrap_or_default(),
        }
    }
}

fn role(entry: &AuditEntry) -> String {
    match (&entry.action, named_role(entry)) {
        (RecordedAction::Known(Action::MemberJoined), Some(role)) => format!(", {role}"),
        (_, Some(role)) => format!(" as {role}"),
        (_, None) => String::new(),
    }
}

fn named_role(entry: &AuditEntry) -> Option<&'static str> {
    entry.details.role.and_then(|role| role.parse().ok()).map(with_article)
}

/// The action with the role that it is about, for a table that has the subject in a column of its own.
pub(crate) fn phrase_with_role(entry: &AuditEntry) -> String {
    match (&entry.action, named_role(entry)) {
        (RecordedAction::Known(Action::MemberJoined), Some(role)) => format!("joined as {role} with"),
        (action, Some(role)) => format!("{} as {role}", phrase(action)),
        (action, None) => phrase(action),
    }
}

/// Who did it.
pub(crate) fn actor(actor: &RecordedActor) -> String {
    match actor {
        RecordedActor::Member { name, .. } => name.clone(),
        RecordedActor::Operator(Some(name)) => format!("An operator ({name})"),
        RecordedActor::Operator(None) => "An operator".to_owned(),
        RecordedActor::Stranger => "Someone".to_owned(),
    }
}

/// The member's address, which distinguishes two members with similar names.
pub(crate) fn email(actor: &RecordedActor) -> &str {
    match actor {
        RecordedActor::Member { email, .. } => email.as_deref().unwrap_or_default(),
        RecordedActor::Operator(_) | RecordedActor::Stranger => "",
    }
}

/// The member's id, which stays the same whatever the member is called.
pub(crate) fn member_id(actor: &RecordedActor) -> String {
    match actor {
        RecordedActor::Member { id: Some(id), .. } => id.to_string(),
        RecordedActor::Member { id: None, .. } | RecordedActor::Operator(_) | RecordedActor::Stranger => String::new(),
    }
}

/// Returns what was done, before the name of what it was done to.
fn phrase(action: &RecordedAction) -> String {
    match action {
        RecordedAction::Known(action) => known(*action).to_owned(),
        RecordedAction::Unknown(name) => name.replace('_', " ") + ":",
    }
}

fn known(action: Action) -> &'static str {
    match action {
        Action::OrganisationCreated => "created the organisation",
        Action::OrganisationRenamed => "renamed the organisation",
        Action::OrganisationSuspended => "suspended the organisation",
        Action::OrganisationResumed => "resumed the organisation",
        Action::OrganisationClosed => "closed the organisation",
        Action::OrganisationErased => "erased from the closed organisation",
        Action::RegisterRestored => "restored the register as of",
        Action::RegisterMigrated => "updated the database schema by",
        Action::MemberInvited => "invited",
        Action::InvitationWithdrawn => "revoked the invitation for",
        Action::MemberJoined => "joined as",
        Action::MemberRemoved => "removed",
        Action::AdministratorMade => "made an administrator of",
        Action::KeyManagerMade => "made a key manager of",
        Action::AuditorMade => "made an auditor of",
        Action::SecondFactorRequired => "required two-step sign-in for everyone in",
        Action::SecondFactorOptional => "stopped requiring two-step sign-in in",
        Action::NameChanged => "changed their name to",
        Action::EmailChanged => "changed their email to",
        Action::EmailChangeRequested => "asked to change their email to",
        Action::PasswordChanged => "changed the password of",
        Action::PasswordResetIssued => "created a password reset link for",
        Action::PasswordResetRequested => "asked for a password reset link for",
        Action::PasswordReset => "reset the password of",
        Action::PasswordAndPasskeysReset => "reset the password and removed all passkeys of",
        Action::SignedIn => "signed in as",
        Action::SignedInByRecoveryCode => "signed in with a recovery code as",
        Action::SignedInByPasskey => "signed in with a passkey as",
        Action::SignedInByProvider => "signed in by single sign-on as",
        Action::ProviderLinked => "linked single sign-on to",
        Action::ProviderPersonRefused => "was refused single sign-on, as another person with the email",
        Action::AddressConfirmed => "confirmed the email of",
        Action::PasskeyAdded => "added the passkey",
        Action::PasskeyRemoved => "removed the passkey",
        Action::SignInFailed => "entered an incorrect password for",
        Action::CodeFailed => "entered an incorrect code for",
        Action::RoleRefused => "was not allowed by their role to use",
        Action::FormRefused => "sent an outdated form to",
        Action::SignedOut => "signed out as",
        Action::SessionEnded => "signed out another session of",
        Action::OtherSessionsEnded => "signed out all other sessions of",
        Action::SessionsEnded => "ended the sessions of",
        Action::SecondFactorTurnedOn => "turned on two-step sign-in for",
        Action::SecondFactorTurnedOff => "turned off two-step sign-in for",
        Action::RecoveryCodesReplaced => "created new recovery codes for",
        Action::KeyCreated => "created the key",
        Action::KeyReplaced => "created a replacement for the key",
        Action::KeyRevoked => "revoked the key",
        Action::KeyPaused => "paused the key",
        Action::KeyResumed => "resumed the key",
        Action::KeysStopped => "stopped all keys:",
        Action::KeysResumed => "resumed keys that were stopped together:",
        Action::KeyNetworksChanged => "changed the allowed networks of the key",
        Action::KeyAgeLimited => "changed the longest life of keys of",
        Action::KeyRenamed => "renamed the key",
        Action::KeyMarkCleared => "cleared the warning that it was sent unencrypted from the key",
        Action::KeyNoted => "changed the note about the key",
        Action::PatientShown => "viewed patient",
        Action::PatientErased => "erased the patient",
        Action::PatientsExported => "exported",
    }
}
