//! The form by which a passkey signs, on the pages for signing in and for confirming.

use intake_domain::{Challenge, PasskeyAssertion, RelyingParty, Token};
use serde::Deserialize;

use crate::page::destination::Destination;
use crate::page::error::PageError;

/// The form by which a passkey signs.
pub(crate) struct PasskeyPrompt {
    pub(crate) action: &'static str,
    /// The form of a change that is made with the passkey.
    pub(crate) fields: Vec<(&'static str, String)>,
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
    #[serde(flatten)]
    assertion: SentAssertion,
    #[serde(default)]
    pub(crate) next: Destination,
}

/// A use of a passkey, as the browser sends it.
#[derive(Deserialize)]
pub(crate) struct SentAssertion {
    credential: String,
    client_data: String,
    authenticator_data: String,
    signature: String,
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
        let (form_token, host) = (token.form_token(), site.host().to_owned());
        Self { action, fields: Vec::new(), form_token, challenge, host, next, alert: None }
    }
}

impl AssertionForm {
    /// Returns what the browser sent, if the form is of this sign-in, or of this session.
    pub(crate) fn of_form(self, form_token: &str) -> Result<PasskeyAssertion, PageError> {
        if self.form_token != form_token {
            return Err(PageError::StaleForm);
        }
        self.assertion.read()
    }
}

impl SentAssertion {
    /// Returns what the browser sent, in a form that is known to be of this session.
    pub(crate) fn read(&self) -> Result<PasskeyAssertion, PageError> {
        let Self { credential, client_data, authenticator_data, signature } = self;
        let assertion = PasskeyAssertion::from_base64url([credential, client_data, authenticator_data, signature]);
        assertion.ok_or(PageError::BadForm)
    }
}
