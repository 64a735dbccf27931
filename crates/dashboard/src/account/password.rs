//! Account → Change password.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Form;
use askama::Template;
use intake_domain::{
    ChangePasswordError, Password, PasswordHasher, PasswordOwner, PresentedPassword, SignedIn, change_password,
};
use intake_edge as edge;
use serde::Deserialize;

use crate::account::ACCOUNT;
use crate::mails::AccountChange;
use crate::page::error::PageError;
use crate::page::notice::redirect_with_notice;
use crate::page::part::{Members, Part};
use crate::page::passwords::PasswordsOn;
use crate::page::shell::{Shell, render};
use crate::page::visitor::Visitor;

const SAME: &str = "This is the password you already have. Nothing was changed.";

#[derive(Template)]
#[template(path = "account/password.html")]
struct PasswordPage {
    shell: Shell,
    email: String,
    new_password_error: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct ChangePasswordForm {
    form_token: String,
    new_password: String,
}

pub(crate) async fn page(_: PasswordsOn, visitor: Visitor) -> Result<HttpResponse, PageError> {
    visitor.assert_confirmed()?;
    render(StatusCode::OK, &PasswordPage::new(&visitor))
}

pub(crate) async fn change(
    _: PasswordsOn,
    visitor: Visitor,
    form: Form<ChangePasswordForm>,
    members: Part<dyn Members>,
    hasher: Part<dyn PasswordHasher>,
) -> Result<HttpResponse, PageError> {
    let ChangePasswordForm { form_token, new_password } = form.into_inner();
    let new = PresentedPassword::new(new_password);
    let confirmed = visitor.confirmed_by(&form_token)?;
    let page = PasswordPage::new(&visitor);
    let SignedIn { member, organisation_name, .. } = &visitor.signed_in;
    let organisations = std::slice::from_ref(organisation_name);
    let owner = PasswordOwner { email: member.email.as_str(), name: member.name.as_str(), organisations };
    let new = match Password::new(new.expose(), owner) {
        Ok(new) => new,
        Err(error) => {
            let error = Some(format!("The new password {error}."));
            return render(StatusCode::UNPROCESSABLE_ENTITY, &PasswordPage { new_password_error: error, ..page });
        }
    };
    let (members, hasher) = (members.as_ref(), hasher.as_ref());
    match change_password(members, members, hasher, confirmed, &new, edge::random(), &visitor.audit()).await {
        Err(ChangePasswordError::Same) => {
            let error = Some(SAME.to_owned());
            return render(StatusCode::UNPROCESSABLE_ENTITY, &PasswordPage { new_password_error: error, ..page });
        }
        outcome => outcome?,
    }
    visitor.mail_change(AccountChange::PasswordChanged)?;
    Ok(redirect_with_notice(ACCOUNT, "Your password was changed, and you were signed out everywhere else."))
}

impl PasswordPage {
    fn new(visitor: &Visitor) -> Self {
        let email = visitor.signed_in.member.email.to_string();
        Self { shell: Shell::new("account", visitor), email, new_password_error: None }
    }
}

impl From<ChangePasswordError> for PageError {
    fn from(error: ChangePasswordError) -> Self {
        match error {
            ChangePasswordError::Same => Self::BadForm,
            ChangePasswordError::Hasher(error) => error.into(),
            ChangePasswordError::Store(error) => error.into(),
        }
    }
}
