//! Settings → Account: the member's own account, its second factor and its sessions.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use intake_domain::{MemberStore, PasskeyStore, Role, SessionStore};

use crate::account::passkeys::PasskeyRow;
use crate::account::sessions::{self, SessionRow};
use crate::page::error::PageError;
use crate::page::shell::{Shell, render};
use crate::page::visitor::Visitor;

/// The query of the account's and the sign-in page to which a change of the password leads.
pub(crate) const PASSWORD_CHANGED: &str = "password-changed";

/// The query of the account's page to which a change of the email address leads.
pub(crate) const EMAIL_CHANGED: &str = "email-changed";
/// The queries of the account's page to which changes of passkeys lead.
pub(crate) const PASSKEY_ADDED: &str = "passkey-added";
pub(crate) const PASSKEY_REMOVED: &str = "passkey-removed";
/// The queries of the account's page to which ending sessions leads.
pub(crate) const SESSION_ENDED: &str = "session-ended";
pub(crate) const OTHER_SESSIONS_ENDED: &str = "other-sessions-ended";

#[derive(Template)]
#[template(path = "account/page.html")]
struct AccountPage {
    shell: Shell,
    email: String,
    role: Role,
    is_second_factor_required: bool,
    codes_left: Option<u32>,
    passkeys: Vec<PasskeyRow>,
    sessions: Vec<SessionRow>,
    notice: Option<&'static str>,
}

pub(crate) async fn page(
    request: HttpRequest,
    visitor: Visitor,
    members: Data<dyn MemberStore>,
    passkeys: Data<dyn PasskeyStore>,
    sessions: Data<dyn SessionStore>,
) -> Result<HttpResponse, PageError> {
    let member = &visitor.signed_in.member;
    let codes_left = members.recovery_codes_left(member.id).await?;
    let email = member.email.to_string();
    let page = AccountPage {
        shell: Shell::new("account", &visitor),
        email,
        role: member.role,
        is_second_factor_required: visitor.signed_in.is_second_factor_required,
        codes_left,
        passkeys: passkeys.passkeys(member.id).await?.into_iter().map(PasskeyRow::from).collect(),
        sessions: sessions::rows(&visitor, sessions.as_ref()).await?,
        notice: notice(request.query_string()),
    };
    render(StatusCode::OK, &page)
}

/// What was done, if a change has led here.
fn notice(query: &str) -> Option<&'static str> {
    match query {
        PASSWORD_CHANGED => Some("Your password was changed, and you were signed out everywhere else."),
        PASSKEY_ADDED => Some("The passkey was added. You can sign in with it."),
        PASSKEY_REMOVED => Some("The passkey was removed."),
        EMAIL_CHANGED => Some("Your email was changed, and you were signed out everywhere else."),
        SESSION_ENDED => Some("The session was ended."),
        OTHER_SESSIONS_ENDED => Some("All your other sessions were ended."),
        _ => None,
    }
}
