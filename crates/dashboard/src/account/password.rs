//! Settings → Account → Change password.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form};
use askama::Template;
use intake_domain::{
    AccountStore, MemberStore, Password, PasswordError, PasswordHasher, PresentedPassword, change_password,
};
use intake_edge as edge;
use serde::Deserialize;

use crate::account::ACCOUNT;
use crate::mails::AccountChange;
use crate::page::error::PageError;
use crate::page::notice::redirect_with_notice;
use crate::page::shell::{Shell, render};
use crate::page::visitor::Visitor;

#[derive(Template)]
#[template(path = "account/password.html")]
struct PasswordPage {
    shell: Shell,
    email: String,
    new_password_error: Option<PasswordError>,
}

#[derive(Deserialize)]
pub(crate) struct ChangePasswordForm {
    form_token: String,
    new_password: String,
}

pub(crate) async fn page(visitor: Visitor) -> Result<HttpResponse, PageError> {
    visitor.assert_confirmed()?;
    render(StatusCode::OK, &PasswordPage::new(&visitor))
}

pub(crate) async fn change(
    visitor: Visitor,
    form: Form<ChangePasswordForm>,
    (accounts, members): (Data<dyn AccountStore>, Data<dyn MemberStore>),
    hasher: Data<dyn PasswordHasher>,
) -> Result<HttpResponse, PageError> {
    let ChangePasswordForm { form_token, new_password } = form.into_inner();
    let new = PresentedPassword::new(new_password);
    visitor.assert_own_form(&form_token)?;
    let confirmed = visitor.confirmed()?;
    let page = PasswordPage::new(&visitor);
    let new = match Password::new(new.expose()) {
        Ok(new) => new,
        Err(error) => {
            let page = PasswordPage { new_password_error: Some(error), ..page };
            return render(StatusCode::UNPROCESSABLE_ENTITY, &page);
        }
    };
    let ports = (accounts.as_ref(), members.as_ref(), hasher.as_ref());
    change_password(ports, confirmed, &new, edge::random(), &visitor.audit()).await?;
    visitor.mail_change(AccountChange::PasswordChanged)?;
    Ok(redirect_with_notice(ACCOUNT, "Your password was changed, and you were signed out everywhere else."))
}

impl PasswordPage {
    fn new(visitor: &Visitor) -> Self {
        let email = visitor.signed_in.member.email.to_string();
        Self { shell: Shell::new("account", visitor), email, new_password_error: None }
    }
}
