//! Accepting an invitation: a guest chooses a name and a password, becomes a member and is signed in.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use intake_domain::{
    Invitation, JoinError, JoinRequest, MemberId, MemberStore, NameError, PasswordError, PasswordHasher,
    PresentedPassword, Token, join,
};
use intake_http::edge;
use serde::Deserialize;

use crate::account::sign_in::signed_in_under;
use crate::mails::Mails;
use crate::page::error::PageError;
use crate::page::shell::render;
use crate::page::visitor::origin;

/// Where a guest accepts an invitation.
#[must_use]
pub fn invitation_path(token: &Token) -> String {
    format!("/invitations/{}", token.expose())
}

#[derive(Template)]
#[template(path = "members/invitation.html")]
struct InvitationPage<'a> {
    organisation: &'a str,
    email: &'a str,
    action: String,
    name: &'a str,
    name_error: Option<NameError>,
    password_error: Option<PasswordError>,
    alert: Option<&'static str>,
}

impl<'a> InvitationPage<'a> {
    fn new(invitation: &'a Invitation, token: &Token, name: &'a str) -> Self {
        Self {
            organisation: &invitation.organisation_name,
            email: invitation.email.as_str(),
            action: invitation_path(token),
            name,
            name_error: None,
            password_error: None,
            alert: None,
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct JoinForm {
    name: String,
    password: String,
}

pub(crate) async fn page(token: Path<String>, members: Data<dyn MemberStore>) -> Result<HttpResponse, PageError> {
    let (token, invitation) = opened(&token, members.as_ref()).await?;
    render(StatusCode::OK, &InvitationPage::new(&invitation, &token, ""))
}

pub(crate) async fn submit(
    request: HttpRequest,
    token: Path<String>,
    form: Form<JoinForm>,
    members: Data<dyn MemberStore>,
    hasher: Data<dyn PasswordHasher>,
    mails: Data<Mails>,
) -> Result<HttpResponse, PageError> {
    let (token, invitation) = opened(&token, members.as_ref()).await?;
    let JoinForm { name, password } = form.into_inner();
    let (session, password) = (Token::new(edge::random()), PresentedPassword::new(password));
    let origin = origin(&request);
    let id = MemberId::new(origin.at, edge::random());
    let request = JoinRequest {
        invitation: &token,
        name: &name,
        password: &password,
        id,
        salt: edge::random(),
        session: &session,
    };
    let page = InvitationPage::new(&invitation, &token, &name);
    match join(members.as_ref(), hasher.as_ref(), request, origin).await {
        Ok(()) => {
            let Invitation { organisation_id, organisation_name, .. } = &invitation;
            mails.new_administrator(members.as_ref(), *organisation_id, organisation_name, id).await;
            Ok(signed_in_under(&session))
        }
        Err(JoinError::Invalid { name, password }) => {
            let page = InvitationPage { name_error: name, password_error: password, ..page };
            render(StatusCode::UNPROCESSABLE_ENTITY, &page)
        }
        Err(JoinError::EmailTaken) => {
            let alert = Some(
                "Someone already signs in with this email address. Sign in, or ask for an invitation to another address.",
            );
            render(StatusCode::CONFLICT, &InvitationPage { alert, ..page })
        }
        Err(JoinError::NoInvitation) => Err(PageError::NoInvitation),
        Err(JoinError::Store(error)) => Err(error.into()),
    }
}

async fn opened(token: &str, members: &dyn MemberStore) -> Result<(Token, Invitation), PageError> {
    let token = Token::parse(token).ok_or(PageError::NoInvitation)?;
    let invitation = members.invitation(&token.digest(), edge::now()).await?;
    Ok((token, invitation.ok_or(PageError::NoInvitation)?))
}
