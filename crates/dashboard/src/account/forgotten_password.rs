//! The forgotten password: a form that mails a reset link. Its answer, and the time it takes, are the same whether or
//! not the address is a member's, because the address is looked up after the answer. Only where there is a mail server.

use actix_web::http::StatusCode;
use actix_web::web::Form;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use intake_domain::{EmailAddress, Origin, StoreError, Token, request_password_reset};
use intake_edge as edge;
use serde::Deserialize;

use crate::account::reset_password::reset_password_path;
use crate::mails::{Mails, share_of, zone_of};
use crate::page::base_url::BaseUrl;
use crate::page::error::PageError;
use crate::page::part::{Members, Part};
use crate::page::passwords::PasswordsOn;
use crate::page::shell::render;
use crate::page::throttle::{Throttle, too_many_attempts};
use crate::page::visitor::origin;

#[derive(Template)]
#[template(path = "account/forgotten_password.html")]
struct ForgottenPage {
    email: String,
    email_error: Option<String>,
    alert: Option<String>,
    is_asked: bool,
}

#[derive(Deserialize)]
pub(crate) struct ForgottenForm {
    email: String,
}

pub(crate) async fn page(_: PasswordsOn, mails: Part<Mails>) -> Result<HttpResponse, PageError> {
    assert_mails(&mails)?;
    render(StatusCode::OK, &ForgottenPage::new(String::new()))
}

pub(crate) async fn submit(
    request: HttpRequest,
    _: PasswordsOn,
    form: Form<ForgottenForm>,
    members: Part<dyn Members>,
    mails: Part<Mails>,
    base: Part<BaseUrl>,
    throttle: Part<Throttle>,
) -> Result<HttpResponse, PageError> {
    assert_mails(&mails)?;
    let origin = origin(&request);
    let page = ForgottenPage::new(form.into_inner().email);
    let email: EmailAddress = match page.email.parse() {
        Ok(email) => email,
        Err(error) => {
            let email_error = Some(format!("The email {error}."));
            return render(StatusCode::UNPROCESSABLE_ENTITY, &ForgottenPage { email_error, ..page });
        }
    };
    if let Some(wait) = throttle.wait_for_reset(origin.address) {
        let alert = Some(too_many_attempts(wait));
        return render(StatusCode::TOO_MANY_REQUESTS, &ForgottenPage { alert, ..page });
    }
    // The number of look-ups that wait is bounded by the throttle and the database's deadline.
    actix_web::rt::spawn(async move {
        if let Err(error) = send_links(members.as_ref(), &mails, &base.0, &email, origin).await {
            let cause = PageError::from(error).cause().map(|cause| cause.to_string());
            tracing::warn!(cause, "a reset link that was asked for could not be made");
        }
    });
    render(StatusCode::OK, &ForgottenPage { is_asked: true, ..page })
}

async fn send_links(
    members: &dyn Members,
    mails: &Mails,
    base: &str,
    email: &EmailAddress,
    origin: Origin,
) -> Result<(), StoreError> {
    let make_token = || Token::new(edge::random());
    for (account, made) in request_password_reset(members, members, email, make_token, origin).await? {
        let link = format!("{base}{}", reset_password_path(&made.token));
        let zone = zone_of(members, account.id).await;
        mails.password_reset(share_of(&account), &made.email, None, &link, made.expires_at, zone);
    }
    Ok(())
}

/// Without a mail server there is no such page.
fn assert_mails(mails: &Mails) -> Result<(), PageError> {
    if mails.are_sent() { Ok(()) } else { Err(PageError::NotFound) }
}

impl ForgottenPage {
    fn new(email: String) -> Self {
        Self { email, email_error: None, alert: None, is_asked: false }
    }
}
