//! The form by which a passkey signs, on the pages for signing in and for confirming.

use intake_domain::{Challenge, PasskeyAssertion, RelyingParty, Token};
use serde::Deserialize;

use crate::page::destination::Destination;
use crate::page::error::PageError;

/// The form by which a passkey signs.
pub(crate) struct PasskeyPrompt {
    pub(crate) action: &'static str,
    pub(crate) form_token: String,
    pub(crate) challenge: String,
    pub(crate) host: String,
    /// Page to which signing in leads.
    pub(crate) next: Destination,
    pub(crate) alert: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct AssertionForm {
    form_token: String,
    credential: String,
    client_data: String,
    authenticator_data: String,
    signature: String,
    #[serde(default)]
    pub(crate) next: Destination,
}

impl PasskeyPrompt {
    pub(crate) fn alone(token: &Token, site: &RelyingParty) -> Self {
        Self::new("/sign-in/passkey/use", token, &Challenge::of(token), site, Destination::default())
    }

    pub(crate) fn new(
        action: &'static str,
        token: &Token,
        challenge: &Challenge,
        site: &RelyingParty,
        next: Destination,
    ) -> Self {
        let challenge = challenge.as_base64url().to_owned();
        Self { action, form_token: token.form_token(), challenge, host: site.host().to_owned(), next, alert: None }
    }
}

impl AssertionForm {
    /// Returns what the browser sent, if the form is of this sign-in, or of this session.
    pub(crate) fn of_form(self, form_token: &str) -> Result<PasskeyAssertion, PageError> {
        if self.form_token != form_token {
            return Err(PageError::StaleForm);
        }
        let Self { credential, client_data, authenticator_data, signature, .. } = self;
        let assertion = PasskeyAssertion::from_base64url([&credential, &client_data, &authenticator_data, &signature]);
        assertion.ok_or(PageError::BadForm)
    }
}
