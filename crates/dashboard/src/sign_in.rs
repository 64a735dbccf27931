//! Signing in and out.

use actix_web::http::StatusCode;
use actix_web::http::header::SET_COOKIE;
use actix_web::web::{Data, Form};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use intake_domain::{Actor, MemberStore, PasswordHasher, SessionStore, Token};
use intake_http::edge;
use serde::Deserialize;

use crate::page_error::PageError;
use crate::session_cookie;
use crate::shell::{lead_to, show};
use crate::throttle::Throttle;
use crate::visitor::{Visitor, deed};

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage<'a> {
    email: &'a str,
    alert: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct SignInForm {
    email: String,
    password: String,
}

#[derive(Deserialize)]
pub(crate) struct OwnForm {
    pub(crate) form_token: String,
}

pub(crate) async fn page(visitor: Option<Visitor>) -> Result<HttpResponse, PageError> {
    match visitor {
        Some(_) => Ok(lead_to("/settings/api-keys")),
        None => show(StatusCode::OK, &SignInPage { email: "", alert: None }),
    }
}

pub(crate) async fn submit(
    request: HttpRequest,
    form: Form<SignInForm>,
    members: Data<dyn MemberStore>,
    sessions: Data<dyn SessionStore>,
    hasher: Data<dyn PasswordHasher>,
    throttle: Data<Throttle>,
) -> Result<HttpResponse, PageError> {
    let SignInForm { email, password } = form.into_inner();
    let deed = deed(&request, Actor::Stranger);
    if let Some(wait) = throttle.wait(&email, deed.address) {
        let alert = format!("Too many attempts. Try again in {} seconds.", wait.as_secs() + 1);
        return show(StatusCode::TOO_MANY_REQUESTS, &SignInPage { email: &email, alert: Some(alert) });
    }
    let token = Token::new(edge::random());
    let (members, sessions, hasher) = (members.as_ref(), sessions.as_ref(), hasher.as_ref());
    let pair = (email.as_str(), password.as_str());
    if intake_domain::sign_in(members, sessions, hasher, pair, &token, deed).await?.is_none() {
        let alert = Some("Email or password is wrong".to_owned());
        return show(StatusCode::UNAUTHORIZED, &SignInPage { email: &email, alert });
    }
    Ok(signed_in_under(&token))
}

pub(crate) async fn sign_out(
    visitor: Visitor,
    form: Form<OwnForm>,
    sessions: Data<dyn SessionStore>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    intake_domain::sign_out(sessions.as_ref(), &visitor.token, &visitor.deed()).await?;
    Ok(signed_out())
}

/// Leads a member who has just signed in to the keys.
pub(crate) fn signed_in_under(token: &Token) -> HttpResponse {
    let mut response = HttpResponse::SeeOther();
    response.insert_header(("Location", "/settings/api-keys"));
    response.insert_header((SET_COOKIE, session_cookie::set(token))).finish()
}

/// Leads whoever has just signed out back to the beginning.
pub(crate) fn signed_out() -> HttpResponse {
    let mut response = HttpResponse::SeeOther();
    response.insert_header(("Location", "/sign-in"));
    response.insert_header((SET_COOKIE, session_cookie::clear())).finish()
}
