//! What the provider of single sign-on says of a person, and what is checked of it besides what the crate checks.

use std::time::Duration;

use anyhow::ensure;
use intake_domain::{EmailAddress, Identity, ProviderError, Subject};
use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreErrorResponseType, CoreGenderClaim, CoreJsonWebKey,
    CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreRevocableToken, CoreRevocationErrorResponse,
    CoreTokenIntrospectionResponse, CoreTokenType,
};
use openidconnect::{
    AdditionalClaims, EmptyExtraTokenFields, EndUserEmail, EndUserName, EndpointMaybeSet, EndpointNotSet, EndpointSet,
    IdTokenClaims, IdTokenFields, LocalizedClaim, StandardErrorResponse, StandardTokenResponse,
};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

/// Greatest age of a token of the provider: it makes one when the code is redeemed.
const TOKEN_AGE_MAX: Duration = Duration::from_secs(10 * 60);
/// Time by which the provider's clock may be ahead of this one.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);

/// The claims of a token.
pub(crate) type Claims = IdTokenClaims<MoreClaims, CoreGenderClaim>;

type Fields = IdTokenFields<
    MoreClaims,
    EmptyExtraTokenFields,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJwsSigningAlgorithm,
>;

/// A client of the provider that reads [`MoreClaims`].
pub(crate) type Client = openidconnect::Client<
    MoreClaims,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    StandardErrorResponse<CoreErrorResponseType>,
    StandardTokenResponse<Fields, CoreTokenType>,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointMaybeSet,
    EndpointMaybeSet,
>;

/// Claims that the crate does not know.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct MoreClaims {
    /// Before this moment, the token is not valid (RFC 7519). It may have a fraction.
    nbf: Option<f64>,
    /// Entra ID, which has no `email_verified`: whether the directory owns the address's domain.
    xms_edov: Option<Said>,
}

/// A yes or no in one of the forms in which Entra ID says it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
enum Said {
    Bool(bool),
    Number(i64),
    Text(String),
}

impl AdditionalClaims for MoreClaims {}

impl Said {
    fn is_yes(&self) -> bool {
        match self {
            Self::Bool(is_so) => *is_so,
            Self::Number(number) => *number == 1,
            Self::Text(text) => matches!(text.as_str(), "1" | "true"),
        }
    }
}

/// Refuses a token that is for another client, is not valid yet or was not made just now, and a person without an id or
/// who is said to sign in later.
pub(crate) fn check(claims: &Claims, client_id: &str, now: OffsetDateTime) -> anyhow::Result<()> {
    let (earliest, latest) = ((now - TOKEN_AGE_MAX).unix_timestamp(), (now + CLOCKS_DIFFER).unix_timestamp());
    ensure!(claims.authorized_party().is_none_or(|party| **party == *client_id), "azp names another client");
    ensure!(!claims.subject().is_empty(), "sub is empty");
    let issued_at = claims.issue_time().timestamp();
    ensure!(issued_at >= earliest, "iat is long ago");
    ensure!(issued_at <= latest, "iat is in the future");
    // Exact for every moment of the next millions of years.
    #[expect(clippy::cast_precision_loss, reason = "a moment in seconds has far fewer than 53 bits")]
    let is_valid = claims.additional_claims().nbf.is_none_or(|nbf| nbf <= latest as f64);
    ensure!(is_valid, "nbf is in the future");
    ensure!(claims.auth_time().is_none_or(|at| at.timestamp() <= latest), "auth_time is in the future");
    Ok(())
}

/// Returns whether the token says that the provider has verified its address.
pub(crate) fn is_email_verified(claims: &Claims) -> bool {
    let by_domain = claims.additional_claims().xms_edov.as_ref().is_some_and(Said::is_yes);
    claims.email_verified().unwrap_or(by_domain)
}

/// The person of these claims, with this address, if it is verified, and this name.
pub(crate) fn identity(
    claims: &Claims,
    email: Option<&EndUserEmail>,
    is_verified: bool,
    name: Option<&LocalizedClaim<EndUserName>>,
) -> Result<Identity, ProviderError> {
    let email = email.filter(|_| is_verified).and_then(|email| email.parse::<EmailAddress>().ok());
    let email = email.ok_or(ProviderError::NoVerifiedEmail)?;
    let name = name.and_then(|name| name.get(None)).map(|name| name.as_str().to_owned());
    let at = claims.auth_time().and_then(|at| OffsetDateTime::from_unix_timestamp(at.timestamp()).ok());
    let subject = Subject { issuer: claims.issuer().to_string(), id: claims.subject().to_string() };
    Ok(Identity { subject, email, name, authenticated_at: at })
}
