//! Account → Sessions: where the member is signed in, and ending it there.

use actix_web::HttpResponse;
use actix_web::web::Path;
use intake_domain::{SessionRecord, SessionStore, TokenDigest, Zone, end_other_sessions, end_session};
use intake_edge as edge;

use crate::account::ACCOUNT;
use crate::account::sign_in::{SIGNED_OUT, signed_out};
use crate::page::confirm::ConfirmPage;
use crate::page::error::PageError;
use crate::page::form_token::OwnForm;
use crate::page::moment::{Moment, exact, relative};
use crate::page::notice::redirect_with_notice;
use crate::page::part::Part;
use crate::page::shell::Shell;
use crate::page::visitor::Visitor;

/// A session, as the account's page lists it.
pub(crate) struct SessionRow {
    pub(crate) id: String,
    pub(crate) browser: String,
    pub(crate) address: String,
    pub(crate) started_at: Moment,
    pub(crate) last_used_at: Moment,
    pub(crate) is_this: bool,
    /// True if the member signed in by single sign-on.
    pub(crate) is_by_provider: bool,
}

/// The visitor's sessions, this one first.
pub(crate) async fn rows(visitor: &Visitor, sessions: &dyn SessionStore) -> Result<Vec<SessionRow>, PageError> {
    let found = sessions.sessions(visitor.signed_in.member.id, edge::now()).await?;
    let this = visitor.token.digest();
    let (mut rows, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|session| session.token == this);
    rows.extend(others);
    Ok(rows.into_iter().map(|session| SessionRow::new(session, &this, visitor.zone())).collect())
}

pub(crate) async fn ask_to_end(
    visitor: Visitor,
    session: Path<String>,
    sessions: Part<dyn SessionStore>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_confirmed()?;
    let own = rows(&visitor, sessions.as_ref()).await?.into_iter().find(|own| own.id == *session);
    let SessionRow { id, browser, .. } = own.ok_or(PageError::NotFound)?;
    let action = format!("{ACCOUNT}/sessions/{id}/end");
    confirm_page(&visitor, format!("End the session of {browser}?"), action, "End session").ask()
}

pub(crate) async fn end(
    OwnForm(visitor): OwnForm<Visitor>,
    session: Path<String>,
    sessions: Part<dyn SessionStore>,
) -> Result<HttpResponse, PageError> {
    let token = TokenDigest::from_hexadecimal(&session).ok_or(PageError::NotFound)?;
    let confirmed = visitor.confirmed()?;
    if !end_session(sessions.as_ref(), confirmed, &token, &visitor.audit()).await? {
        return Err(PageError::NotFound);
    }
    if token == visitor.token.digest() {
        return Ok(signed_out(SIGNED_OUT));
    }
    Ok(redirect_with_notice(ACCOUNT, "The session was ended."))
}

pub(crate) async fn ask_to_end_others(visitor: Visitor) -> Result<HttpResponse, PageError> {
    visitor.assert_confirmed()?;
    let (title, action) = ("End all your other sessions?".to_owned(), format!("{ACCOUNT}/sessions/end-others"));
    confirm_page(&visitor, title, action, "End all other sessions").ask()
}

pub(crate) async fn end_others(
    OwnForm(visitor): OwnForm<Visitor>,
    sessions: Part<dyn SessionStore>,
) -> Result<HttpResponse, PageError> {
    end_other_sessions(sessions.as_ref(), visitor.confirmed()?, &visitor.audit()).await?;
    Ok(redirect_with_notice(ACCOUNT, "All your other sessions were ended."))
}

fn confirm_page(visitor: &Visitor, title: String, action: String, button: &'static str) -> ConfirmPage<'static> {
    ConfirmPage {
        shell: Shell::new("account", visitor),
        title,
        text: "Anyone who uses it is signed out at once.",
        action,
        button,
        is_danger: true,
        back: ACCOUNT,
    }
}

impl SessionRow {
    fn new(session: SessionRecord, this: &TokenDigest, zone: Zone) -> Self {
        Self {
            id: session.token.to_hexadecimal(),
            browser: session.browser.unwrap_or_else(|| "Unknown browser".to_owned()),
            address: session.address.unwrap_or_else(|| "unknown".to_owned()),
            started_at: exact(session.started_at, zone),
            last_used_at: relative(session.last_used_at, zone),
            is_this: session.token == *this,
            is_by_provider: session.is_by_provider,
        }
    }
}
