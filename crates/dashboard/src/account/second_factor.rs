//! Settings → Account → Two-step sign-in: turning it on with an authenticator app, turning it off, and recovery codes.

use std::array;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form};
use askama::Template;
use intake_domain::{
    MemberStore, PresentedCode, RECOVERY_CODES, RecoveryCode, SecondFactorError, SecondFactorRequest, TotpSecret,
    replace_recovery_codes, turn_off_second_factor, turn_on_second_factor,
};
use intake_http::edge;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::account::qr_code::QrImage;
use crate::page::confirm_password::{ConfirmPasswordPage, PasswordForm, confirm};
use crate::page::error::PageError;
use crate::page::shell::{Shell, redirect, render};
use crate::page::visitor::{Newcomer, Visitor};

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

#[derive(Deserialize)]
pub(crate) struct TurnOnForm {
    form_token: String,
    secret: String,
    code: String,
    password: String,
}

pub(crate) async fn page(
    Newcomer(visitor): Newcomer,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    if members.recovery_codes_left(visitor.signed_in.member.id).await?.is_some() {
        return Ok(redirect("/settings/account"));
    }
    render(StatusCode::OK, &SetUpPage::new(&visitor, &TotpSecret::new(edge::random()))?)
}

pub(crate) async fn turn_on(
    Newcomer(visitor): Newcomer,
    form: Form<TurnOnForm>,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    // The page itself sends the secret, so that it is stored nowhere before it is in use.
    let secret = TotpSecret::from_base32(&form.secret).ok_or(PageError::BadForm)?;
    let again = |status, code_error, password_error| {
        render(status, &SetUpPage { code_error, password_error, ..SetUpPage::new(&visitor, &secret)? })
    };
    let TurnOnForm { code, password, .. } = form.into_inner();
    let confirmed = match confirm(&visitor, password).await? {
        Ok(confirmed) => confirmed,
        Err(refusal) => return again(refusal.status, None, Some(refusal.text)),
    };
    let (codes, code) = (new_codes(), PresentedCode::new(code));
    let request = SecondFactorRequest { secret: secret.clone(), code: &code, recovery_codes: &codes };
    match turn_on_second_factor(members.as_ref(), confirmed, request, &visitor.deed()).await {
        Ok(()) => show_codes(&visitor, &codes),
        Err(SecondFactorError::WrongCode) => again(StatusCode::UNPROCESSABLE_ENTITY, Some(WRONG_CODE), None),
        Err(error) => redirect_to_account(error),
    }
}

pub(crate) async fn confirm_turn_off(visitor: Visitor) -> Result<HttpResponse, PageError> {
    turn_off_page(&visitor).ask()
}

pub(crate) async fn turn_off(
    visitor: Visitor,
    form: Form<PasswordForm>,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let confirmed = match confirm(&visitor, form.into_inner().password).await? {
        Ok(confirmed) => confirmed,
        Err(refusal) => return turn_off_page(&visitor).ask_again(refusal),
    };
    match turn_off_second_factor(members.as_ref(), confirmed, &visitor.deed()).await {
        Ok(()) => Ok(redirect("/settings/account")),
        Err(error) => redirect_to_account(error),
    }
}

pub(crate) async fn confirm_replace(visitor: Visitor) -> Result<HttpResponse, PageError> {
    replace_page(&visitor).ask()
}

pub(crate) async fn replace(
    visitor: Visitor,
    form: Form<PasswordForm>,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let confirmed = match confirm(&visitor, form.into_inner().password).await? {
        Ok(confirmed) => confirmed,
        Err(refusal) => return replace_page(&visitor).ask_again(refusal),
    };
    let codes = new_codes();
    match replace_recovery_codes(members.as_ref(), confirmed, &codes, &visitor.deed()).await {
        Ok(()) => show_codes(&visitor, &codes),
        Err(error) => redirect_to_account(error),
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

fn turn_off_page(visitor: &Visitor) -> ConfirmPasswordPage {
    ConfirmPasswordPage {
        shell: Shell::new("account", visitor),
        title: "Turn off two-step sign-in?".to_owned(),
        text: "You will sign in with your password alone, and your recovery codes will stop working.".to_owned(),
        action: "/settings/account/second-factor/turn-off".to_owned(),
        button: "Turn off",
        is_danger: false,
        back: "/settings/account",
        password_error: None,
    }
}

fn replace_page(visitor: &Visitor) -> ConfirmPasswordPage {
    ConfirmPasswordPage {
        shell: Shell::new("account", visitor),
        title: "Create new recovery codes?".to_owned(),
        text: "They will replace the codes you have, which will stop working.".to_owned(),
        action: "/settings/account/recovery-codes".to_owned(),
        button: "Show new codes",
        is_danger: false,
        back: "/settings/account",
        password_error: None,
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

/// Shows the account's page when there was nothing to change: the form was sent twice, or from another window, or the
/// organisation has required two-step sign-in meanwhile.
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
