//! Choosing another password by a reset link, for members who forgot theirs. It signs nobody in: the sign-in page comes
//! next, with the code of two-step sign-in where that is on.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use intake_domain::{
    MemberStore, PasswordError, PasswordHasher, PresentedPassword, ResetPasswordError, Token, reset_password,
};
use intake_http::edge;
use serde::Deserialize;

use crate::account::page::PASSWORD_CHANGED;
use crate::page::error::PageError;
use crate::page::shell::{redirect, render};
use crate::page::visitor::origin;

/// Where a member who forgot the password chooses another one.
#[must_use]
pub fn reset_password_path(token: &Token) -> String {
    format!("/reset-password/{}", token.expose())
}

#[derive(Template)]
#[template(path = "account/reset_password.html")]
struct ResetPage {
    email: String,
    action: String,
    password_error: Option<PasswordError>,
}

#[derive(Deserialize)]
pub(crate) struct ResetForm {
    password: String,
}

pub(crate) async fn page(token: Path<String>, members: Data<dyn MemberStore>) -> Result<HttpResponse, PageError> {
    let (_, page) = opened(&token, members.as_ref()).await?;
    render(StatusCode::OK, &page)
}

pub(crate) async fn submit(
    request: HttpRequest,
    token: Path<String>,
    form: Form<ResetForm>,
    members: Data<dyn MemberStore>,
    hasher: Data<dyn PasswordHasher>,
) -> Result<HttpResponse, PageError> {
    let (token, page) = opened(&token, members.as_ref()).await?;
    let password = PresentedPassword::new(form.into_inner().password);
    let (members, hasher, origin) = (members.as_ref(), hasher.as_ref(), origin(&request));
    match reset_password(members, hasher, &token, &password, edge::random(), origin).await {
        Ok(()) => Ok(redirect(&format!("/sign-in?{PASSWORD_CHANGED}"))),
        Err(ResetPasswordError::Invalid(error)) => {
            render(StatusCode::UNPROCESSABLE_ENTITY, &ResetPage { password_error: Some(error), ..page })
        }
        Err(ResetPasswordError::NoReset) => Err(PageError::NoPasswordReset),
        Err(ResetPasswordError::Store(error)) => Err(error.into()),
    }
}

async fn opened(token: &str, members: &dyn MemberStore) -> Result<(Token, ResetPage), PageError> {
    let token = Token::parse(token).ok_or(PageError::NoPasswordReset)?;
    let member = members.password_reset(&token.digest(), edge::now()).await?.ok_or(PageError::NoPasswordReset)?;
    let action = reset_password_path(&token);
    Ok((token, ResetPage { email: member.email.to_string(), action, password_error: None }))
}
