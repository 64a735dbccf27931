//! Settings → Activity: the audit log, page by page.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Query};
use askama::Template;
use intake_domain::{Action, AuditEntry, AuditLog, RecordedAction};
use serde::Deserialize;

use crate::page::error::PageError;
use crate::page::moment::exact;
use crate::page::shell::{Shell, render};
use crate::page::visitor::Visitor;

/// Entries on a page: as many as are still easy to read through.
const PAGE_SIZE: u32 = 50;

#[derive(Template)]
#[template(path = "activity.html")]
struct ActivityPage {
    shell: Shell,
    entries: Vec<EntryRow>,
    older: Option<String>,
}

struct EntryRow {
    at: String,
    actor: String,
    action: String,
    subject: String,
    address: String,
}

#[derive(Deserialize)]
pub(crate) struct Cursor {
    before: Option<String>,
}

pub(crate) async fn page(
    visitor: Visitor,
    cursor: Query<Cursor>,
    log: Data<dyn AuditLog>,
) -> Result<HttpResponse, PageError> {
    let before = cursor.before.as_deref().map(str::parse).transpose().map_err(|_| PageError::NotFound)?;
    // One more than is shown, to see whether there are older ones.
    let mut found = log.entries(visitor.organisation(), before, PAGE_SIZE + 1).await?;
    let has_older = found.len() > PAGE_SIZE as usize;
    found.truncate(PAGE_SIZE as usize);
    let older = found.last().filter(|_| has_older).map(|entry| entry.id.to_string());
    let entries = found.into_iter().map(EntryRow::from).collect();
    render(StatusCode::OK, &ActivityPage { shell: Shell::new("activity", &visitor), entries, older })
}

impl From<AuditEntry> for EntryRow {
    fn from(entry: AuditEntry) -> Self {
        let nobody = match &entry.action {
            RecordedAction::Known(Action::SignInFailed | Action::CodeFailed | Action::PasswordReset)
            | RecordedAction::Unknown(_) => "Someone",
            RecordedAction::Known(_) => "An operator",
        };
        let action = match entry.action {
            RecordedAction::Known(action) => phrase(action).to_owned(),
            RecordedAction::Unknown(name) => name.replace('_', " ") + ":",
        };
        Self {
            at: exact(entry.at),
            actor: entry.actor.unwrap_or_else(|| nobody.to_owned()),
            action,
            subject: entry.subject,
            address: entry.address.unwrap_or_default(),
        }
    }
}

fn phrase(action: Action) -> &'static str {
    match action {
        Action::MemberInvited => "invited",
        Action::InvitationWithdrawn => "withdrew the invitation for",
        Action::MemberJoined => "joined as",
        Action::MemberRemoved => "removed",
        Action::NameChanged => "changed their name to",
        Action::PasswordChanged => "changed the password of",
        Action::PasswordResetIssued => "created a password reset link for",
        Action::PasswordReset => "used the password reset link of",
        Action::SignedIn => "signed in as",
        Action::SignedInByRecoveryCode => "signed in with a recovery code as",
        Action::SignInFailed => "entered a wrong password for",
        Action::CodeFailed => "entered the right password but a wrong code for",
        Action::SignedOut => "signed out as",
        Action::SecondFactorTurnedOn => "turned on two-step sign-in for",
        Action::SecondFactorTurnedOff => "turned off two-step sign-in for",
        Action::RecoveryCodesReplaced => "created new recovery codes for",
        Action::KeyCreated => "created the key",
        Action::KeyReplaced => "created a replacement for the key",
        Action::KeyRevoked => "revoked the key",
        Action::KeyMarkCleared => "cleared the warning that it was sent unencrypted from the key",
    }
}
