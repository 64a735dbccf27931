//! Settings → Account → Two-step sign-in: turning it on with an authenticator app, turning it off, and recovery codes.

use std::array;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form};
use askama::Template;
use intake_domain::{
    MemberStore, PasswordHasher, PresentedCode, PresentedPassword, RECOVERY_CODES, RecoveryCode, SecondFactorError,
    SecondFactorRequest, TotpSecret, replace_recovery_codes, turn_off_second_factor, turn_on_second_factor,
};
use intake_http::edge;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::account::qr_code::QrImage;
use crate::page::error::PageError;
use crate::page::shell::{Shell, redirect, render};
use crate::page::throttle::{Throttle, too_many_attempts};
use crate::page::visitor::Visitor;

pub(crate) const WRONG_PASSWORD: &str = "The password is wrong.";
const WRONG_CODE: &str =
    "The code is wrong. Enter the one that the app is showing now, and check that your phone's clock is right.";

#[derive(Template)]
#[template(path = "account/second_factor.html")]
struct SetUpPage {
    shell: Shell,
    image: QrImage,
    link: String,
    secret: String,
    groups: String,
    code_error: Option<&'static str>,
    password_error: Option<String>,
}

#[derive(Template)]
#[template(path = "account/recovery_codes.html")]
struct RecoveryCodesPage<'a> {
    shell: Shell,
    codes: &'a [RecoveryCode],
}

#[derive(Template)]
#[template(path = "account/confirm_password.html")]
struct ConfirmPasswordPage {
    shell: Shell,
    title: &'static str,
    text: &'static str,
    action: &'static str,
    button: &'static str,
    password_error: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct TurnOnForm {
    form_token: String,
    secret: String,
    code: String,
    password: String,
}

#[derive(Deserialize)]
pub(crate) struct PasswordForm {
    form_token: String,
    password: String,
}

pub(crate) async fn page(visitor: Visitor, members: Data<dyn MemberStore>) -> Result<HttpResponse, PageError> {
    if members.recovery_codes_left(visitor.signed_in.member.id).await?.is_some() {
        return Ok(redirect("/settings/account"));
    }
    render(StatusCode::OK, &SetUpPage::new(&visitor, &TotpSecret::new(edge::random()))?)
}

pub(crate) async fn turn_on(
    visitor: Visitor,
    form: Form<TurnOnForm>,
    members: Data<dyn MemberStore>,
    hasher: Data<dyn PasswordHasher>,
    throttle: Data<Throttle>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    // The page itself sends the secret, so that it is stored nowhere before it is in use.
    let secret = TotpSecret::from_base32(&form.secret).ok_or(PageError::BadForm)?;
    let again = |status, code_error, password_error| {
        render(status, &SetUpPage { code_error, password_error, ..SetUpPage::new(&visitor, &secret)? })
    };
    if let Some(wait) = wait(&throttle, &visitor) {
        return again(StatusCode::TOO_MANY_REQUESTS, None, Some(wait));
    }
    let (codes, secret) = (new_codes(), secret.clone());
    let TurnOnForm { code, password, .. } = form.into_inner();
    let (code, password) = (PresentedCode::new(code), PresentedPassword::new(password));
    let request = SecondFactorRequest { secret, code: &code, password: &password, recovery_codes: &codes };
    let (members, hasher, member) = (members.as_ref(), hasher.as_ref(), &visitor.signed_in.member);
    match turn_on_second_factor(members, hasher, member, request, &visitor.deed()).await {
        Ok(()) => show_codes(&visitor, &codes),
        Err(SecondFactorError::WrongCode) => again(StatusCode::UNPROCESSABLE_ENTITY, Some(WRONG_CODE), None),
        Err(SecondFactorError::WrongPassword) => {
            again(StatusCode::UNPROCESSABLE_ENTITY, None, Some(WRONG_PASSWORD.to_owned()))
        }
        Err(error) => redirect_to_account(error),
    }
}

pub(crate) async fn confirm_turn_off(visitor: Visitor) -> Result<HttpResponse, PageError> {
    render(StatusCode::OK, &ConfirmPasswordPage::turn_off(&visitor, None))
}

pub(crate) async fn turn_off(
    visitor: Visitor,
    form: Form<PasswordForm>,
    members: Data<dyn MemberStore>,
    hasher: Data<dyn PasswordHasher>,
    throttle: Data<Throttle>,
) -> Result<HttpResponse, PageError> {
    let (members, hasher, member) = (members.as_ref(), hasher.as_ref(), &visitor.signed_in.member);
    let deed = visitor.deed();
    let PasswordForm { form_token, password } = form.into_inner();
    let password = PresentedPassword::new(password);
    let change = turn_off_second_factor(members, hasher, member, &password, &deed);
    match confirmed(&visitor, &form_token, &throttle, ConfirmPasswordPage::turn_off, change).await? {
        Some(page) => Ok(page),
        None => Ok(redirect("/settings/account")),
    }
}

pub(crate) async fn confirm_replace(visitor: Visitor) -> Result<HttpResponse, PageError> {
    render(StatusCode::OK, &ConfirmPasswordPage::replace(&visitor, None))
}

pub(crate) async fn replace(
    visitor: Visitor,
    form: Form<PasswordForm>,
    members: Data<dyn MemberStore>,
    hasher: Data<dyn PasswordHasher>,
    throttle: Data<Throttle>,
) -> Result<HttpResponse, PageError> {
    let (members, hasher, member) = (members.as_ref(), hasher.as_ref(), &visitor.signed_in.member);
    let (codes, deed) = (new_codes(), visitor.deed());
    let PasswordForm { form_token, password } = form.into_inner();
    let password = PresentedPassword::new(password);
    let change = replace_recovery_codes(members, hasher, member, &password, &codes, &deed);
    match confirmed(&visitor, &form_token, &throttle, ConfirmPasswordPage::replace, change).await? {
        Some(page) => Ok(page),
        None => show_codes(&visitor, &codes),
    }
}

/// Makes a change that needs the password. Returns the page to show instead if the change was not made.
async fn confirmed(
    visitor: &Visitor,
    form_token: &str,
    throttle: &Throttle,
    page: fn(&Visitor, Option<String>) -> ConfirmPasswordPage,
    change: impl Future<Output = Result<(), SecondFactorError>>,
) -> Result<Option<HttpResponse>, PageError> {
    visitor.assert_own_form(form_token)?;
    if let Some(wait) = wait(throttle, visitor) {
        return render(StatusCode::TOO_MANY_REQUESTS, &page(visitor, Some(wait))).map(Some);
    }
    match change.await {
        Ok(()) => Ok(None),
        Err(SecondFactorError::WrongPassword) => {
            render(StatusCode::UNPROCESSABLE_ENTITY, &page(visitor, Some(WRONG_PASSWORD.to_owned()))).map(Some)
        }
        Err(error) => redirect_to_account(error).map(Some),
    }
}

impl SetUpPage {
    fn new(visitor: &Visitor, secret: &TotpSecret) -> Result<Self, PageError> {
        let groups = secret.to_groups().to_string();
        let secret = secret.to_base32().to_string();
        let link = link(visitor.signed_in.member.email.as_str(), &secret);
        let image = QrImage::of(&link).map_err(|error| PageError::Unexpected(error.into()))?;
        let shell = Shell::new("account", visitor);
        Ok(Self { shell, image, link, groups, secret, code_error: None, password_error: None })
    }
}

impl ConfirmPasswordPage {
    fn turn_off(visitor: &Visitor, password_error: Option<String>) -> Self {
        Self {
            shell: Shell::new("account", visitor),
            title: "Turn off two-step sign-in?",
            text: "You will sign in with your password alone, and your recovery codes will stop working.",
            action: "/settings/account/second-factor/turn-off",
            button: "Turn off",
            password_error,
        }
    }

    fn replace(visitor: &Visitor, password_error: Option<String>) -> Self {
        Self {
            shell: Shell::new("account", visitor),
            title: "Create new recovery codes?",
            text: "They will replace the codes you have, which will stop working.",
            action: "/settings/account/recovery-codes",
            button: "Show new codes",
            password_error,
        }
    }
}

/// The link that authenticator apps read from the image.
fn link(email: &str, secret: &str) -> String {
    let email = utf8_percent_encode(email, NON_ALPHANUMERIC);
    format!("otpauth://totp/intake:{email}?secret={secret}&issuer=intake")
}

fn new_codes() -> [RecoveryCode; RECOVERY_CODES] {
    array::from_fn(|_| RecoveryCode::new(edge::random()))
}

fn show_codes(visitor: &Visitor, codes: &[RecoveryCode]) -> Result<HttpResponse, PageError> {
    render(StatusCode::OK, &RecoveryCodesPage { shell: Shell::new("account", visitor), codes })
}

/// Limits guesses at the password from a browser that was left signed in, too.
pub(crate) fn wait(throttle: &Throttle, visitor: &Visitor) -> Option<String> {
    throttle.wait_for_confirmation(visitor.signed_in.member.id).map(too_many_attempts)
}

/// Shows the account's page when there was nothing to change: the form was sent twice, or from another window.
fn redirect_to_account(error: SecondFactorError) -> Result<HttpResponse, PageError> {
    match error {
        SecondFactorError::Store(error) => Err(error.into()),
        _ => Ok(redirect("/settings/account")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_keeps_odd_addresses_apart_from_what_follows() {
        assert_eq!(
            link("a+b&c?d@clinic.example", "ABC"),
            "otpauth://totp/intake:a%2Bb%26c%3Fd%40clinic%2Eexample?secret=ABC&issuer=intake"
        );
    }
}
