//! The visitor's password, asked for again before what a browser that was left signed in must not be enough for.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use intake_domain::{ConfirmError, ConfirmedMember, MemberStore, PasswordHasher, PresentedPassword, confirm_password};
use serde::Deserialize;

use crate::page::error::PageError;
use crate::page::shell::{Shell, render};
use crate::page::throttle::{Throttle, too_many_attempts};
use crate::page::visitor::Visitor;

/// The question, and the form that confirms it with the password.
#[derive(Template)]
#[template(path = "page/confirm_password.html")]
pub(crate) struct ConfirmPasswordPage {
    pub(crate) shell: Shell,
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) action: String,
    pub(crate) button: &'static str,
    pub(crate) is_danger: bool,
    pub(crate) back: &'static str,
    pub(crate) password_error: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct PasswordForm {
    pub(crate) form_token: String,
    pub(crate) password: String,
}

/// Why a password confirms nothing, to be shown beside its field.
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
}

/// Compares what was typed with the visitor's password, unless too many guesses came before.
pub(crate) async fn confirm(
    visitor: &Visitor,
    password: String,
) -> Result<Result<ConfirmedMember<'_>, Refusal>, PageError> {
    let password = PresentedPassword::new(password);
    let throttle = visitor.shared::<Throttle>()?;
    if let Some(wait) = throttle.wait_for_confirmation(visitor.signed_in.member.id) {
        return Ok(Err(Refusal { status: StatusCode::TOO_MANY_REQUESTS, text: too_many_attempts(wait) }));
    }
    let (members, hasher) = (visitor.shared::<dyn MemberStore>()?, visitor.shared::<dyn PasswordHasher>()?);
    match confirm_password(members, hasher, &visitor.signed_in, &password).await {
        Ok(confirmed) => Ok(Ok(confirmed)),
        Err(ConfirmError::WrongPassword) => {
            let text = "The password is wrong.".to_owned();
            Ok(Err(Refusal { status: StatusCode::UNPROCESSABLE_ENTITY, text }))
        }
        Err(ConfirmError::Store(error)) => Err(error.into()),
    }
}

impl ConfirmPasswordPage {
    /// The page as an answer to who opens it.
    pub(crate) fn ask(&self) -> Result<HttpResponse, PageError> {
        render(StatusCode::OK, self)
    }

    /// The page once more, with what was wrong.
    pub(crate) fn ask_again(self, refusal: Refusal) -> Result<HttpResponse, PageError> {
        render(refusal.status, &Self { password_error: Some(refusal.text), ..self })
    }
}
