//! Settings → Account → Change password. It asks for the current one, so that a browser left signed in is not enough.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form};
use askama::Template;
use intake_domain::{
    ChangePasswordError, ChangePasswordRequest, MemberStore, PasswordError, PasswordHasher, PresentedPassword,
    change_password,
};
use intake_http::edge;
use serde::Deserialize;

use crate::account::page::PASSWORD_CHANGED;
use crate::account::second_factor::{WRONG_PASSWORD, wait};
use crate::page::error::PageError;
use crate::page::shell::{Shell, redirect, render};
use crate::page::throttle::Throttle;
use crate::page::visitor::Visitor;

#[derive(Template)]
#[template(path = "account/password.html")]
struct PasswordPage {
    shell: Shell,
    email: String,
    password_error: Option<String>,
    new_password_error: Option<PasswordError>,
}

#[derive(Deserialize)]
pub(crate) struct ChangePasswordForm {
    form_token: String,
    password: String,
    new_password: String,
}

pub(crate) async fn page(visitor: Visitor) -> Result<HttpResponse, PageError> {
    render(StatusCode::OK, &PasswordPage::new(&visitor))
}

pub(crate) async fn change(
    visitor: Visitor,
    form: Form<ChangePasswordForm>,
    members: Data<dyn MemberStore>,
    hasher: Data<dyn PasswordHasher>,
    throttle: Data<Throttle>,
) -> Result<HttpResponse, PageError> {
    let ChangePasswordForm { form_token, password, new_password } = form.into_inner();
    let (current, new) = (PresentedPassword::new(password), PresentedPassword::new(new_password));
    visitor.assert_own_form(&form_token)?;
    let page = PasswordPage::new(&visitor);
    if let Some(wait) = wait(&throttle, &visitor) {
        return render(StatusCode::TOO_MANY_REQUESTS, &PasswordPage { password_error: Some(wait), ..page });
    }
    let request = ChangePasswordRequest { current: &current, new: &new, salt: edge::random(), session: &visitor.token };
    let (members, hasher, member) = (members.as_ref(), hasher.as_ref(), &visitor.signed_in.member);
    match change_password(members, hasher, member, request, &visitor.deed()).await {
        Ok(()) => Ok(redirect(&format!("/settings/account?{PASSWORD_CHANGED}"))),
        Err(ChangePasswordError::WrongPassword) => {
            let page = PasswordPage { password_error: Some(WRONG_PASSWORD.to_owned()), ..page };
            render(StatusCode::UNPROCESSABLE_ENTITY, &page)
        }
        Err(ChangePasswordError::Invalid(error)) => {
            render(StatusCode::UNPROCESSABLE_ENTITY, &PasswordPage { new_password_error: Some(error), ..page })
        }
        Err(ChangePasswordError::Store(error)) => Err(error.into()),
    }
}

impl PasswordPage {
    fn new(visitor: &Visitor) -> Self {
        let email = visitor.signed_in.member.email.to_string();
        Self { shell: Shell::new("account", visitor), email, password_error: None, new_password_error: None }
    }
}
