//! The provider of single sign-on, over OpenID Connect. The protocol is the crate's; here is what surrounds it: where
//! the provider is found, how long it may take, how much it may say, and how many requests may wait for it at once.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, anyhow, ensure};
use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use intake_domain::{EmailAddress, Identity, IdentityProvider, ProviderError, ProviderRound, Subject};
use openidconnect::core::{
    CoreAuthPrompt, CoreAuthenticationFlow, CoreClient, CoreClientAuthMethod, CoreIdToken, CoreIdTokenClaims,
    CoreJwsSigningAlgorithm, CoreProviderMetadata, CoreUserInfoClaims,
};
use openidconnect::{
    AccessToken, AuthType, AuthorizationCode, ClaimsVerificationError, ClientId, ClientSecret, CsrfToken,
    EndpointMaybeSet, EndpointNotSet, EndpointSet, IssuerUrl, LocalizedClaim, Nonce, OAuth2TokenResponse,
    PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope, SignatureVerificationError,
    TokenResponse, UserInfoError,
};
use serde::Deserialize;
use serde_json::{Value, json};
use time::OffsetDateTime;
use tokio::sync::Semaphore;

use crate::sessions::provider_http::ProviderHttp;

/// How long the provider may take for all that one step of a sign-in asks of it: a person is waiting.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How much longer a step is waited for when not even its time limit ends it, as in a hanging look-up of a name.
const GRACE: Duration = Duration::from_secs(1);
/// How many steps may wait for the provider at once, each with a thread: far more than people who sign in within the
/// same second, and few enough to hang for as long as they like.
const STEPS_MAX: usize = 8;
/// How long what the provider says of itself is believed, so that a key that it no longer uses is not.
const DOCUMENT_LIFE: Duration = Duration::from_secs(60 * 60);
/// How long a provider that did not answer is not asked again what it says of itself: everybody gets the same error.
const FAILURE_LIFE: Duration = Duration::from_secs(3);
/// How old the provider's documents must be before an unknown key makes them be fetched again: such tokens can be made
/// up, and keys do not change twice a minute.
const KEYS_AGE_MIN: Duration = Duration::from_secs(30);

/// How long ago the provider may have made a token: it makes one when the code is redeemed.
const TOKEN_AGE_MAX: Duration = Duration::from_secs(10 * 60);
/// How far the provider's clock may be ahead of this one.
const CLOCKS_DIFFER: Duration = Duration::from_secs(60);

/// The signatures that are accepted: those that only the provider can make. `none`, and those that are made with the
/// client's secret, are not among them, whatever the provider says of itself.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// Where the provider is, and how this service is known there.
#[derive(Clone)]
pub struct OpenIdSettings {
    /// The provider's address, as it says it itself.
    pub issuer: String,
    /// The name of this service there.
    pub client_id: String,
    /// The secret of this service there.
    pub client_secret: String,
    /// Where the provider sends browsers back to.
    pub return_address: String,
}

/// An OpenID Connect provider.
pub struct OpenIdProvider(Arc<Provider>);

struct Provider {
    settings: OpenIdSettings,
    http: ProviderHttp,
    /// What the provider last said of itself.
    document: RwLock<Option<Document>>,
    /// Held by who asks the provider for it, with the last failure.
    failure: Mutex<Option<(Instant, String)>>,
    steps: Arc<Semaphore>,
}

/// What the provider says of itself, keys included.
#[derive(Clone)]
struct Document {
    metadata: Arc<CoreProviderMetadata>,
    fetched_at: Instant,
}

type Client =
    CoreClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointMaybeSet, EndpointMaybeSet>;

impl OpenIdProvider {
    /// The provider, which is not asked for anything yet: the service starts without it.
    pub fn new(settings: OpenIdSettings) -> anyhow::Result<Self> {
        IssuerUrl::new(settings.issuer.clone()).context("the issuer is no address")?;
        let http = ProviderHttp::new(settings.issuer.starts_with("https:"));
        let (document, failure) = (RwLock::default(), Mutex::default());
        let steps = Arc::new(Semaphore::new(STEPS_MAX));
        Ok(Self(Arc::new(Provider { settings, http, document, failure, steps })))
    }

    /// Asks the provider what it says of itself, and fails if that cannot be used. Blocks.
    pub fn greet(&self) -> anyhow::Result<()> {
        let document = self.0.fetch(Instant::now() + TIMEOUT)?;
        self.0.client(&document).map(drop)
    }

    /// Runs a step on a thread of its own. A thread that hangs keeps its place among those that may run, so that there
    /// are never more.
    async fn step<T: Send + 'static>(
        &self,
        step: impl FnOnce(&Provider, Instant) -> Result<T, ProviderError> + Send + 'static,
    ) -> Result<T, ProviderError> {
        let unavailable = |why: &str| ProviderError::Unavailable(why.into());
        let place = Arc::clone(&self.0.steps).try_acquire_owned();
        let place = place.map_err(|_| unavailable("too many requests wait for it"))?;
        let provider = Arc::clone(&self.0);
        let deadline = Instant::now() + TIMEOUT;
        let done = tokio::task::spawn_blocking(move || {
            let _place = place;
            step(&provider, deadline)
        });
        match tokio::time::timeout(TIMEOUT + GRACE, done).await {
            Ok(Ok(done)) => done,
            Ok(Err(error)) => Err(ProviderError::Unavailable(error.into())),
            Err(_) => Err(unavailable("the request hangs")),
        }
    }
}

#[async_trait]
impl IdentityProvider for OpenIdProvider {
    async fn begin(&self, round: &ProviderRound, is_anew: bool) -> Result<String, ProviderError> {
        // What is known needs no thread.
        if let Some(document) = self.0.known(DOCUMENT_LIFE) {
            return self.0.begin(&document, round, is_anew);
        }
        let round = round.clone();
        let step = move |provider: &Provider, deadline| provider.begin(&provider.document(deadline)?, &round, is_anew);
        self.step(step).await
    }

    async fn finish(&self, round: &ProviderRound, code: &str, now: OffsetDateTime) -> Result<Identity, ProviderError> {
        let (round, code) = (round.clone(), code.to_owned());
        self.step(move |provider, deadline| provider.finish(&round, code, now, deadline)).await
    }
}

impl Provider {
    /// What the provider said of itself, if that is not older than this.
    fn known(&self, age_max: Duration) -> Option<Document> {
        let document = self.document.read().unwrap_or_else(PoisonError::into_inner).clone();
        document.filter(|document| document.fetched_at.elapsed() < age_max)
    }

    fn document(&self, deadline: Instant) -> Result<Document, ProviderError> {
        self.document_of(DOCUMENT_LIFE, deadline)
    }

    /// The same, fetched if it is older than this. One asks; who comes meanwhile waits for the same answer.
    fn document_of(&self, age_max: Duration, deadline: Instant) -> Result<Document, ProviderError> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(document) = self.known(age_max) {
            return Ok(document);
        }
        if let Some((_, why)) = failure.as_ref().filter(|(at, _)| at.elapsed() < FAILURE_LIFE) {
            return Err(ProviderError::Unavailable(why.clone().into()));
        }
        match self.fetch(deadline) {
            Ok(document) => {
                *self.document.write().unwrap_or_else(PoisonError::into_inner) = Some(document.clone());
                *failure = None;
                Ok(document)
            }
            Err(error) => {
                *failure = Some((Instant::now(), format!("{error:#}")));
                Err(ProviderError::Unavailable(error.into()))
            }
        }
    }

    fn fetch(&self, deadline: Instant) -> anyhow::Result<Document> {
        let issuer = IssuerUrl::new(self.settings.issuer.clone())?;
        let metadata = CoreProviderMetadata::discover(&issuer, &self.http.until(deadline)).map_err(chain)?;
        Ok(Document { metadata: Arc::new(metadata), fetched_at: Instant::now() })
    }

    fn client(&self, document: &Document) -> anyhow::Result<Client> {
        let metadata = document.metadata.as_ref();
        ensure!(metadata.token_endpoint().is_some(), "the provider has no address for tokens");
        let methods = metadata.token_endpoint_auth_methods_supported();
        let takes = |method| methods.is_none_or(|methods| methods.contains(&method));
        let is_in_body =
            !takes(CoreClientAuthMethod::ClientSecretBasic) && takes(CoreClientAuthMethod::ClientSecretPost);
        let client_id = ClientId::new(self.settings.client_id.clone());
        let secret = ClientSecret::new(self.settings.client_secret.clone());
        let client = CoreClient::from_provider_metadata(metadata.clone(), client_id, Some(secret));
        let return_address = RedirectUrl::new(self.settings.return_address.clone())?;
        let auth_type = if is_in_body { AuthType::RequestBody } else { AuthType::BasicAuth };
        Ok(client.set_redirect_uri(return_address).set_auth_type(auth_type))
    }

    fn begin(&self, document: &Document, round: &ProviderRound, is_anew: bool) -> Result<String, ProviderError> {
        let client = self.client(document).map_err(|error| ProviderError::Unavailable(error.into()))?;
        let (state, nonce) = (CsrfToken::new(round.state()), Nonce::new(round.nonce()));
        let verifier = PkceCodeVerifier::new(round.code_verifier());
        let request = client
            .authorize_url(CoreAuthenticationFlow::AuthorizationCode, || state, || nonce)
            .add_scopes(["email", "profile"].map(|scope| Scope::new(scope.to_owned())))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier));
        let request =
            if is_anew { request.add_prompt(CoreAuthPrompt::Login).set_max_age(Duration::ZERO) } else { request };
        Ok(request.url().0.into())
    }

    fn finish(
        &self,
        round: &ProviderRound,
        code: String,
        now: OffsetDateTime,
        deadline: Instant,
    ) -> Result<Identity, ProviderError> {
        let unavailable = |error: anyhow::Error| ProviderError::Unavailable(error.into());
        let refused = |error: anyhow::Error| ProviderError::Refused(error.into());
        let document = self.document(deadline)?;
        let client = self.client(&document).map_err(unavailable)?;
        let request = client.exchange_code(AuthorizationCode::new(code)).map_err(|error| unavailable(error.into()))?;
        let request = request.set_pkce_verifier(PkceCodeVerifier::new(round.code_verifier()));
        let response = request.request(&self.http.until(deadline)).map_err(|error| match error {
            RequestTokenError::Request(error) => unavailable(chain(error)),
            RequestTokenError::ServerResponse(answer) => refused(anyhow!("it says {}", answer.error())),
            error => refused(anyhow!(error.to_string())),
        })?;
        let token = response.id_token().ok_or_else(|| refused(anyhow!("the answer holds no ID token")))?;
        let nonce = Nonce::new(round.nonce());
        let claims = match token.claims(&verifier(&client, now), &nonce) {
            Err(ClaimsVerificationError::SignatureVerification(SignatureVerificationError::NoMatchingKey)) => {
                let client = self.client(&self.document_of(KEYS_AGE_MIN, deadline)?).map_err(unavailable)?;
                token.claims(&verifier(&client, now), &nonce).cloned()
            }
            claims => claims.cloned(),
        };
        let claims = claims.map_err(|error| refused(chain(error)))?;
        let more = MoreClaims::of(token).map_err(refused)?;
        self.check(&claims, &more, now).map_err(refused)?;
        if claims.email().is_some() {
            let is_verified = claims.email_verified() == Some(true) || more.is_domain_verified();
            return identity(&claims, claims.email().filter(|_| is_verified), claims.name());
        }
        // A provider may tell the address here alone (OpenID Connect Core, 5.4).
        let told = self.ask_for_person(&client, response.access_token().clone(), &claims, deadline);
        let told = told?.ok_or(ProviderError::NoVerifiedEmail)?;
        identity(&claims, told.email().filter(|_| told.email_verified() == Some(true)), told.name())
    }

    /// Refuses what the crate does not look at: a token that is for another client, is not valid yet or was not made
    /// just now, and a person without an id or who is said to sign in later.
    fn check(&self, claims: &CoreIdTokenClaims, more: &MoreClaims, now: OffsetDateTime) -> anyhow::Result<()> {
        let (earliest, latest) = (now - TOKEN_AGE_MAX, now + CLOCKS_DIFFER);
        let for_us = claims.authorized_party().is_none_or(|party| **party == self.settings.client_id);
        ensure!(for_us, "azp names another client");
        ensure!(!claims.subject().is_empty(), "sub is empty");
        let issued_at = claims.issue_time().timestamp();
        ensure!(issued_at >= earliest.unix_timestamp(), "iat is long ago");
        ensure!(issued_at <= latest.unix_timestamp(), "iat is in the future");
        ensure!(more.nbf.is_none_or(|nbf| nbf <= latest.unix_timestamp() as f64), "nbf is in the future");
        let authenticated_at = claims.auth_time().map(|at| at.timestamp());
        ensure!(authenticated_at.is_none_or(|at| at <= latest.unix_timestamp()), "auth_time is in the future");
        Ok(())
    }

    /// What the provider says about the person of these claims. None: it has no place to ask at.
    fn ask_for_person(
        &self,
        client: &Client,
        token: AccessToken,
        claims: &CoreIdTokenClaims,
        deadline: Instant,
    ) -> Result<Option<CoreUserInfoClaims>, ProviderError> {
        let Ok(request) = client.user_info(token, Some(claims.subject().clone())) else { return Ok(None) };
        request.request(&self.http.until(deadline)).map(Some).map_err(|error| match error {
            UserInfoError::Request(error) => ProviderError::Unavailable(chain(error).into()),
            // The error names the persons.
            UserInfoError::ClaimsVerification(_) => ProviderError::Refused("it speaks of another person".into()),
            error => ProviderError::Refused(anyhow!(error.to_string()).into()),
        })
    }
}

fn verifier(client: &Client, now: OffsetDateTime) -> openidconnect::core::CoreIdTokenVerifier<'_> {
    client.id_token_verifier().set_allowed_algs(ALGORITHMS).set_time_fn(move || SystemTime::from(now).into())
}

/// What the crate does not read of a token whose signature it has checked.
#[derive(Deserialize)]
struct MoreClaims {
    /// Before this moment, the token is not valid (RFC 7519). It may have a fraction.
    nbf: Option<f64>,
    /// Entra ID: whether the owner of the address's domain is the owner of the directory. Entra ID has no
    /// `email_verified`.
    xms_edov: Option<Value>,
}

impl MoreClaims {
    fn of(token: &CoreIdToken) -> anyhow::Result<Self> {
        let token = token.to_string();
        let payload = token.split('.').nth(1).context("the token has no claims")?;
        Ok(serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(payload)?)?)
    }

    fn is_domain_verified(&self) -> bool {
        self.xms_edov.as_ref().is_some_and(|said| [json!(true), json!(1), json!("1"), json!("true")].contains(said))
    }
}

/// The person of these claims, with the address, which is verified, and the name.
fn identity(
    claims: &CoreIdTokenClaims,
    email: Option<&openidconnect::EndUserEmail>,
    name: Option<&LocalizedClaim<openidconnect::EndUserName>>,
) -> Result<Identity, ProviderError> {
    let email = email.and_then(|email| email.parse::<EmailAddress>().ok());
    let subject = Subject { issuer: claims.issuer().to_string(), id: claims.subject().to_string() };
    let name = name.and_then(|name| name.get(None)).map(|name| name.as_str().to_owned());
    let at = claims.auth_time().and_then(|at| OffsetDateTime::from_unix_timestamp(at.timestamp()).ok());
    Ok(Identity { subject, email: email.ok_or(ProviderError::NoVerifiedEmail)?, name, authenticated_at: at })
}

/// An error with its causes, for the log: not those that quote an answer, which may hold anything.
fn chain(error: impl std::error::Error + Send + Sync + 'static) -> anyhow::Error {
    anyhow!("{:#}", anyhow::Error::new(error))
}
