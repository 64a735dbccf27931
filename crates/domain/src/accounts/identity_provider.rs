//! The port to the provider of single sign-on: an OpenID Connect provider, to which a browser goes to sign in and from
//! which it comes back.

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::accounts::hasher::Requester;
use crate::accounts::subject::Subject;
use crate::email_address::EmailAddress;
use crate::store_error::Source;
use crate::token::Token;

/// A browser's way to the provider and back. All that ties the way back to this browser comes from one secret, which
/// only its cookie holds: nothing is stored for a browser that does not come back.
#[derive(Clone, Debug)]
pub struct ProviderRound(Token);

/// Who signed in at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The person.
    pub subject: Subject,
    /// The address, which the provider says it has verified.
    pub email: EmailAddress,
    /// The person's name there, if the provider tells it.
    pub name: Option<String>,
    /// Time at which the person last proved to the provider who they are, if the provider tells it.
    pub authenticated_at: Option<OffsetDateTime>,
}

/// Reason why the provider did not say who someone is.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum ProviderError {
    /// Too many others wait for it; trying again later may help.
    #[error("the line before the provider of single sign-on is full")]
    Full,
    /// The provider is away or slow.
    #[error("the provider of single sign-on does not answer")]
    Unavailable(#[source] Source),
    /// The answer is not one to be believed: the signature, the receiver, the moment or something else is wrong.
    #[error("the answer of the provider of single sign-on is refused")]
    Refused(#[source] Source),
    /// The person has no address there, or one that the provider has not verified.
    #[error("the provider of single sign-on has no verified address of this person")]
    NoVerifiedEmail,
}

impl ProviderRound {
    /// The round of this secret.
    #[must_use]
    pub fn new(token: Token) -> Self {
        Self(token)
    }

    /// The secret, for the browser's cookie.
    #[must_use]
    pub fn token(&self) -> &Token {
        &self.0
    }

    /// Returns what the browser brings back: another browser's cookie does not fit to it.
    #[must_use]
    pub fn state(&self) -> String {
        self.0.derived("provider state")
    }

    /// Returns what the provider's token must hold: the token of another round does not fit.
    #[must_use]
    pub fn nonce(&self) -> String {
        self.0.derived("provider nonce")
    }

    /// Returns what redeems the provider's code (RFC 7636): a code that someone else has seen is of no use.
    #[must_use]
    pub fn code_verifier(&self) -> String {
        self.0.derived("provider code verifier")
    }
}

/// The provider of single sign-on.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait IdentityProvider: Send + Sync {
    /// The address that a browser is sent to. If `is_anew`, the provider asks even a person who is signed in there to
    /// prove who they are.
    async fn begin(&self, round: &ProviderRound, is_anew: bool) -> Result<String, ProviderError>;

    /// Redeems the code with which the browser came back. Who it is decides how long that waits.
    async fn finish(
        &self,
        requester: Requester,
        round: &ProviderRound,
        code: &str,
        now: OffsetDateTime,
    ) -> Result<Identity, ProviderError>;
}
