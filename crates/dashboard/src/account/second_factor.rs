//! Account → Two-step sign-in: turning it on with an authenticator app, turning it off, and recovery codes.

use std::array;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Form;
use askama::Template;
use intake_domain::{
    PresentedCode, RECOVERY_CODES, RecoveryCode, RelyingParty, SecondFactorError, SecondFactorRequest, TotpSecret,
    offer_second_factor, replace_recovery_codes, turn_off_second_factor, turn_on_second_factor,
};
use intake_edge as edge;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::account::ACCOUNT;
use crate::account::qr_code::QrImage;
use crate::mails::AccountChange;
use crate::page::confirm::ConfirmPage;
use crate::page::error::PageError;
use crate::page::form_token::OwnForm;
use crate::page::notice::redirect_with_notice;
use crate::page::part::{Members, Part};
use crate::page::shell::{Shell, redirect, render};
use crate::page::visitor::{Newcomer, Visitor};

const WRONG_CODE: &str =
    "Incorrect code. Enter the one that the app shows now, and check that your phone's clock is right.";

const TURNED_OFF: &str = "The authenticator app was turned off, and you were signed out everywhere else.";

#[derive(Template)]
#[template(path = "account/second_factor.html")]
struct SetUpPage {
    shell: Shell,
    image: QrImage,
    link: String,
    groups: String,
    code_error: Option<&'static str>,
}

#[derive(Template)]
#[template(path = "account/recovery_codes.html")]
struct RecoveryCodesPage<'a> {
    shell: Shell,
    codes: &'a [RecoveryCode],
    email: &'a str,
    host: &'a str,
    /// Content of the downloaded file.
    file: String,
}

#[derive(Deserialize)]
pub(crate) struct TurnOnForm {
    form_token: String,
    code: String,
}

pub(crate) async fn page(Newcomer(visitor): Newcomer, factors: Part<dyn Members>) -> Result<HttpResponse, PageError> {
    visitor.assert_confirmed()?;
    match offer_second_factor(factors.as_ref(), &visitor.confirmed()?, edge::random()).await? {
        Some(secret) => render(StatusCode::OK, &SetUpPage::new(&visitor, &secret)?),
        None => Ok(redirect(ACCOUNT)),
    }
}

pub(crate) async fn turn_on(
    Newcomer(visitor): Newcomer,
    form: Form<TurnOnForm>,
    factors: Part<dyn Members>,
) -> Result<HttpResponse, PageError> {
    let confirmed = visitor.confirmed_by(&form.form_token)?;
    let Some(secret) = offer_second_factor(factors.as_ref(), &confirmed, edge::random()).await? else {
        return redirect_to_account(SecondFactorError::Unchanged);
    };
    let (codes, code) = (new_codes(), PresentedCode::new(form.into_inner().code));
    let request = SecondFactorRequest { secret: secret.clone(), code: &code, recovery_codes: &codes };
    match turn_on_second_factor(factors.as_ref(), confirmed, request, &visitor.audit()).await {
        Ok(()) => {
            visitor.mail_change(AccountChange::SecondFactorTurnedOn)?;
            show_codes(&visitor, &codes)
        }
        Err(SecondFactorError::WrongCode) => {
            let page = SetUpPage { code_error: Some(WRONG_CODE), ..SetUpPage::new(&visitor, &secret)? };
            render(StatusCode::UNPROCESSABLE_ENTITY, &page)
        }
        Err(error) => redirect_to_account(error),
    }
}

pub(crate) async fn confirm_turn_off(visitor: Visitor) -> Result<HttpResponse, PageError> {
    visitor.assert_confirmed()?;
    turn_off_page(&visitor).ask()
}

pub(crate) async fn turn_off(
    OwnForm(visitor): OwnForm<Visitor>,
    factors: Part<dyn Members>,
) -> Result<HttpResponse, PageError> {
    let confirmed = visitor.confirmed()?;
    match turn_off_second_factor(factors.as_ref(), confirmed, &visitor.audit()).await {
        Ok(()) => {
            visitor.mail_change(AccountChange::SecondFactorTurnedOff)?;
            Ok(redirect_with_notice(ACCOUNT, TURNED_OFF))
        }
        Err(error) => redirect_to_account(error),
    }
}

pub(crate) async fn confirm_replace(visitor: Visitor) -> Result<HttpResponse, PageError> {
    visitor.assert_confirmed()?;
    replace_page(&visitor).ask()
}

pub(crate) async fn replace(
    OwnForm(visitor): OwnForm<Visitor>,
    factors: Part<dyn Members>,
) -> Result<HttpResponse, PageError> {
    let confirmed = visitor.confirmed()?;
    let codes = new_codes();
    match replace_recovery_codes(factors.as_ref(), confirmed, &codes, &visitor.audit()).await {
        Ok(()) => {
            visitor.mail_change(AccountChange::RecoveryCodesReplaced)?;
            show_codes(&visitor, &codes)
        }
        Err(error) => redirect_to_account(error),
    }
}

impl SetUpPage {
    fn new(visitor: &Visitor, secret: &TotpSecret) -> Result<Self, PageError> {
        let groups = secret.to_groups().to_string();
        let link = link(visitor.signed_in.member.email.as_str(), &secret.to_base32());
        let image = QrImage::of(&link).map_err(|error| PageError::Unexpected(error.into()))?;
        let shell = Shell::new("account", visitor);
        Ok(Self { shell, image, link, groups, code_error: None })
    }
}

fn turn_off_page(visitor: &Visitor) -> ConfirmPage<'static> {
    ConfirmPage {
        shell: Shell::new("account", visitor),
        title: "Turn off two-step sign-in?".to_owned(),
        text: "You will sign in without a code, and your recovery codes will stop working.",
        action: "/settings/account/second-factor/turn-off".to_owned(),
        button: "Turn off",
        is_danger: false,
        back: "/settings/account",
    }
}

fn replace_page(visitor: &Visitor) -> ConfirmPage<'static> {
    ConfirmPage {
        shell: Shell::new("account", visitor),
        title: "Create new recovery codes?".to_owned(),
        text: "They will replace the codes you have, which will stop working.",
        action: "/settings/account/recovery-codes".to_owned(),
        button: "Show new codes",
        is_danger: false,
        back: "/settings/account",
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
    let (email, host) = (visitor.signed_in.member.email.as_str(), visitor.shared::<RelyingParty>()?.host());
    let organisation = &visitor.signed_in.organisation_name;
    let mut file = format!("Recovery codes for {host}\r\nAccount: {email}\r\nOrganisation: {organisation}\r\n\r\n");
    for code in codes {
        file.push_str(code.expose());
        file.push_str("\r\n");
    }
    let file = utf8_percent_encode(&file, NON_ALPHANUMERIC).to_string();
    render(StatusCode::OK, &RecoveryCodesPage { shell: Shell::new("account", visitor), codes, email, host, file })
}

/// The account's page, when nothing was changed.
fn redirect_to_account(error: SecondFactorError) -> Result<HttpResponse, PageError> {
    let notice = match error {
        SecondFactorError::Store(error) => return Err(error.into()),
        SecondFactorError::Required => "Your organisation requires two-step sign-in, so it can't be turned off.",
        // The form was sent twice, or from another window.
        _ => "Two-step sign-in was already changed in another window.",
    };
    Ok(redirect_with_notice(ACCOUNT, notice))
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
