//! Whether members sign in with passwords, and the refusal of what needs one where they are turned off.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use intake_domain::Passwords;

use crate::page::error::PageError;
use crate::page::part::shared;

const CODES_LOCKED: &str =
    "We've stopped accepting codes from your app, after 100 wrong codes in a row. Use a recovery code or a passkey.";

/// Taken by handlers that need a password or sign in by a passkey alone: they refuse where passwords are turned off.
pub(crate) struct PasswordsOn;

impl FromRequest for PasswordsOn {
    type Error = PageError;
    type Future = Ready<Result<Self, PageError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(if has_passwords(request) { Ok(Self) } else { Err(PageError::PasswordsOff) })
    }
}

/// Returns whether members sign in with passwords.
pub(crate) fn has_passwords(request: &HttpRequest) -> bool {
    passwords(request).are_on()
}

/// The same in words of the domain.
pub(crate) fn passwords(request: &HttpRequest) -> Passwords {
    shared::<Passwords>(request).copied().unwrap_or_default()
}

/// Returns why no code of the app is accepted, and what to do.
pub(crate) fn codes_locked(passwords: Passwords) -> String {
    let help = if passwords.are_on() {
        "Or ask an administrator for a password reset link: once you have used it, codes work again."
    } else {
        "Or ask an administrator to reset your two-step sign-in."
    };
    format!("{CODES_LOCKED} {help}")
}
