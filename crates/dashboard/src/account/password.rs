//! Settings → Account → Change password. It asks for the current one, so that a browser left signed in is not enough.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form};
use askama::Template;
use intake_domain::{MemberStore, Password, PasswordError, PasswordHasher, PresentedPassword, change_password};
use intake_http::edge;
use serde::Deserialize;

use crate::account::page::PASSWORD_CHANGED;
use crate::page::confirm_password::confirm;
use crate::page::error::PageError;
use crate::page::shell::{Shell, redirect, render};
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
) -> Result<HttpResponse, PageError> {
    let ChangePasswordForm { form_token, password, new_password } = form.into_inner();
    let new = PresentedPassword::new(new_password);
    visitor.assert_own_form(&form_token)?;
    let page = PasswordPage::new(&visitor);
    let new = match Password::new(new.expose()) {
        Ok(new) => new,
        Err(error) => {
            let page = PasswordPage { new_password_error: Some(error), ..page };
            return render(StatusCode::UNPROCESSABLE_ENTITY, &page);
        }
    };
    let confirmed = match confirm(&visitor, password).await? {
        Ok(confirmed) => confirmed,
        Err(refusal) => {
            return render(refusal.status, &PasswordPage { password_error: Some(refusal.text), ..page });
        }
    };
    let (members, hasher, deed) = (members.as_ref(), hasher.as_ref(), visitor.deed());
    change_password(members, hasher, confirmed, &new, edge::random(), &visitor.token, &deed).await?;
    Ok(redirect(&format!("/settings/account?{PASSWORD_CHANGED}")))
}

impl PasswordPage {
    fn new(visitor: &Visitor) -> Self {
        let email = visitor.signed_in.member.email.to_string();
        Self { shell: Shell::new("account", visitor), email, password_error: None, new_password_error: None }
    }
}
