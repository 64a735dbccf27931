//! Settings → Account → Change email. It asks for the password, so that a browser left signed in is not enough. Nothing is
//! sent to the new address: the member signs in with it, and no mail server is needed.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form};
use askama::Template;
use intake_domain::{ChangeEmailError, EmailAddress, MemberStore, change_email};
use serde::Deserialize;

use crate::account::page::EMAIL_CHANGED;
use crate::page::confirm_password::confirm;
use crate::page::error::PageError;
use crate::page::shell::{Shell, redirect, render};
use crate::page::visitor::Visitor;

const TAKEN: &str = "Someone already signs in with this email address.";

#[derive(Template)]
#[template(path = "account/email.html")]
struct EmailPage {
    shell: Shell,
    email: String,
    typed: String,
    email_error: Option<String>,
    password_error: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct EmailForm {
    form_token: String,
    email: String,
    password: String,
}

pub(crate) async fn page(visitor: Visitor) -> Result<HttpResponse, PageError> {
    render(StatusCode::OK, &EmailPage::new(&visitor, String::new()))
}

pub(crate) async fn change(
    visitor: Visitor,
    form: Form<EmailForm>,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    let EmailForm { form_token, email: typed, password } = form.into_inner();
    visitor.assert_own_form(&form_token)?;
    let page = EmailPage::new(&visitor, typed);
    let email: EmailAddress = match page.typed.parse() {
        Ok(email) => email,
        Err(error) => {
            let email_error = Some(format!("The email {error}."));
            return render(StatusCode::UNPROCESSABLE_ENTITY, &EmailPage { email_error, ..page });
        }
    };
    // Before anybody is told that an address is taken, so that guesses at addresses have to wait as those at passwords do.
    let confirmed = match confirm(&visitor, password).await? {
        Ok(confirmed) => confirmed,
        Err(refusal) => {
            return render(refusal.status, &EmailPage { password_error: Some(refusal.text), ..page });
        }
    };
    match change_email(members.as_ref(), confirmed, &email, &visitor.token, &visitor.deed()).await {
        Ok(()) => Ok(redirect(&format!("/settings/account?{EMAIL_CHANGED}"))),
        Err(ChangeEmailError::Taken) => {
            render(StatusCode::CONFLICT, &EmailPage { email_error: Some(TAKEN.to_owned()), ..page })
        }
        Err(ChangeEmailError::Store(error)) => Err(error.into()),
    }
}

impl EmailPage {
    fn new(visitor: &Visitor, typed: String) -> Self {
        let email = visitor.signed_in.member.email.to_string();
        Self { shell: Shell::new("account", visitor), email, typed, email_error: None, password_error: None }
    }
}
