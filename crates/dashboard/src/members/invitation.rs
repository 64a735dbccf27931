//! Accepting an invitation: a guest chooses a name and a password, becomes a member and is signed in. A guest who has
//! an account types its password. Until then, the page is the same for both: it must not reveal who has an account.
//! Another password is refused only where the link was mailed and the account's address was proved: else it makes a
//! separate account.

use actix_web::http::StatusCode;
use actix_web::web::{Form, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use intake_domain::{
    Invitation, InvitationStore, JoinError, JoinRequest, LinkDelivery, MemberId, NameError, PasswordError,
    PasswordHasher, PresentedPassword, SessionStore, SignIn, Token, join,
};
use intake_edge as edge;
use serde::Deserialize;

use crate::account::provider::provider_name;
use crate::account::sign_in::{code_needed, note_failure_later, signed_in_under};
use crate::mails::Mails;
use crate::page::destination::Destination;
use crate::page::error::PageError;
use crate::page::invitation_path::invitation_path;
use crate::page::part::{Members, Part, shared};
use crate::page::passwords::{PasswordsOn, has_passwords};
use crate::page::shell::render;
use crate::page::throttle::{Throttle, too_many_attempts};
use crate::page::visitor::origin;

const WRONG_PASSWORD: &str = "You already have an account here with this email address. Enter its password.";

const ACCOUNT_NAME_TAKEN: &str = "Another member of this organisation has the name of your account. Sign in, change your name under Account, and open \
    this link again.";

#[derive(Template)]
#[template(path = "members/invitation.html")]
struct InvitationPage<'a> {
    organisation: &'a str,
    email: &'a str,
    action: String,
    name: &'a str,
    name_error: Option<NameError>,
    password_error: Option<PasswordError>,
    alert: Option<String>,
    /// True if the link was mailed to the guest.
    is_mailed: bool,
    are_mails_sent: bool,
    /// Name of the provider of single sign-on, if there is one.
    provider: Option<String>,
    /// True if a guest can join with a password.
    has_passwords: bool,
}

impl<'a> InvitationPage<'a> {
    fn new(request: &HttpRequest, invitation: &'a Invitation, token: &Token, name: &'a str, mails: &Mails) -> Self {
        Self {
            organisation: &invitation.organisation_name,
            email: invitation.email.as_str(),
            action: invitation_path(token),
            name,
            name_error: None,
            password_error: None,
            alert: None,
            is_mailed: invitation.delivery == LinkDelivery::Mailed,
            are_mails_sent: mails.are_sent(),
            provider: provider_name(request),
            has_passwords: has_passwords(request),
        }
    }

    fn refused(self, status: StatusCode, alert: String) -> Result<HttpResponse, PageError> {
        render(status, &Self { alert: Some(alert), ..self })
    }
}

#[derive(Deserialize)]
pub(crate) struct JoinForm {
    name: String,
    password: String,
}

pub(crate) async fn page(
    request: HttpRequest,
    token: Path<String>,
    invitations: Part<dyn Members>,
    mails: Part<Mails>,
) -> Result<HttpResponse, PageError> {
    let (token, invitation) = opened(&token, invitations.as_ref()).await?;
    render(StatusCode::OK, &InvitationPage::new(&request, &invitation, &token, "", &mails))
}

pub(crate) async fn submit(
    request: HttpRequest,
    _: PasswordsOn,
    token: Path<String>,
    form: Form<JoinForm>,
    members: Part<dyn Members>,
    sessions: Part<dyn SessionStore>,
    hasher: Part<dyn PasswordHasher>,
) -> Result<HttpResponse, PageError> {
    let (mails, throttle) = (shared::<Mails>(&request)?, shared::<Throttle>(&request)?);
    let (token, invitation) = opened(&token, members.as_ref()).await?;
    let JoinForm { name, password } = form.into_inner();
    let (session, password, origin) = (Token::new(edge::random()), PresentedPassword::new(password), origin(&request));
    let (id, salt) = (MemberId::random(edge::random()), edge::random());
    let joining = JoinRequest { invitation: &token, name: &name, password: &password, id, salt, session: &session };
    let page = InvitationPage::new(&request, &invitation, &token, &name, mails);
    // The password may be that of an account.
    let email = Some(&invitation.email);
    let wait = throttle.wait(email, origin.address).or_else(|| throttle.wait_as_stranger(email, origin.address));
    if let Some(wait) = wait {
        return page.refused(StatusCode::TOO_MANY_REQUESTS, too_many_attempts(wait));
    }
    match join(members.as_ref(), members.as_ref(), hasher.as_ref(), joining, origin).await {
        Ok((_, SignIn::CodeNeeded)) => Ok(code_needed(&Destination::default(), &session)),
        Ok((id, SignIn::Complete)) => {
            let Invitation { organisation_id, organisation_name, .. } = &invitation;
            mails.new_administrator(members.as_ref(), *organisation_id, organisation_name, id).await;
            Ok(signed_in_under(&request, &session))
        }
        Err(JoinError::Invalid { name, password }) => {
            let page = InvitationPage { name_error: name, password_error: password, ..page };
            render(StatusCode::UNPROCESSABLE_ENTITY, &page)
        }
        Err(JoinError::WrongPassword(accounts)) => {
            note_failure_later(sessions.into_inner(), accounts, origin);
            page.refused(StatusCode::UNAUTHORIZED, WRONG_PASSWORD.to_owned())
        }
        Err(JoinError::AccountNameTaken) => page.refused(StatusCode::CONFLICT, ACCOUNT_NAME_TAKEN.to_owned()),
        Err(JoinError::AccountChanged) => Err(PageError::AlreadyQueued),
        Err(JoinError::NoInvitation) => Err(PageError::NoInvitation),
        Err(JoinError::Hasher(error)) => Err(error.into()),
        Err(JoinError::Store(error)) => Err(error.into()),
    }
}

async fn opened(token: &str, invitations: &dyn InvitationStore) -> Result<(Token, Invitation), PageError> {
    let token = Token::parse(token).ok_or(PageError::NoInvitation)?;
    let invitation = invitations.invitation(&token.digest(), edge::now()).await?;
    Ok((token, invitation.ok_or(PageError::NoInvitation)?))
}
