//! The provider of single sign-on, over OpenID Connect. The protocol is the crate's; here is what surrounds it: where
//! the provider is found, how long it may take, and how much it may say.

use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, anyhow, ensure};
use async_trait::async_trait;
use intake_domain::{Identity, IdentityProvider, ProviderError, ProviderRound, Requester};
use openidconnect::core::{
    CoreAuthPrompt, CoreAuthenticationFlow, CoreClientAuthMethod, CoreIdTokenVerifier, CoreJwsSigningAlgorithm,
    CoreProviderMetadata, CoreUserInfoClaims,
};
use openidconnect::{
    AccessToken, AuthType, AuthorizationCode, ClaimsVerificationError, ClientId, ClientSecret, CsrfToken, IssuerUrl,
    Nonce, OAuth2TokenResponse, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, RequestTokenError, Scope,
    SignatureVerificationError, TokenResponse, UserInfoError,
};
use time::OffsetDateTime;

use crate::sessions::provider_claims::{Claims, Client, check, identity, is_email_verified};
use crate::sessions::provider_http::ProviderHttp;
use crate::sessions::provider_line::ProviderLine;

/// Time that the provider may take for all that one step of a sign-in asks of it: a person is waiting.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Additional time that a step is waited for when not even its time limit ends it, as in a hanging look-up of a name.
const GRACE: Duration = Duration::from_secs(1);
/// Time for which what the provider says of itself is believed, so that a key that it no longer uses is not.
const DOCUMENT_LIFE: Duration = Duration::from_secs(60 * 60);
/// Time for which a provider that did not answer is not asked again what it says of itself: everybody gets the same
/// error.
const FAILURE_LIFE: Duration = Duration::from_secs(3);
/// Age of the provider's documents from which an unknown key makes them be fetched again: such tokens can be made
/// up, and keys do not change twice a minute.
const KEYS_AGE_MIN: Duration = Duration::from_secs(30);

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

/// Address of the provider, and how this service is known there.
#[derive(Clone)]
pub struct OpenIdSettings {
    /// The provider's address, as it says it itself.
    pub issuer: String,
    /// The name of this service there.
    pub client_id: String,
    /// The secret of this service there.
    pub client_secret: String,
    /// Address to which the provider sends browsers back.
    pub return_address: String,
}

/// An OpenID Connect provider.
pub struct OpenIdProvider {
    provider: Arc<Provider>,
    line: ProviderLine,
    /// Held by the thread that asks the provider what it says of itself.
    asking: Arc<tokio::sync::Mutex<()>>,
}

struct Provider {
    settings: OpenIdSettings,
    http: ProviderHttp,
    /// Last statement of the provider about itself.
    document: RwLock<Option<Document>>,
    /// Held by who asks the provider for it, with the last failure.
    failure: Mutex<Option<(Instant, String)>>,
}

/// Statement of the provider about itself, keys included.
#[derive(Clone)]
struct Document {
    metadata: Arc<CoreProviderMetadata>,
    fetched_at: Instant,
}

impl OpenIdProvider {
    /// The provider, which is not asked for anything yet: the service starts without it.
    pub fn new(settings: OpenIdSettings) -> anyhow::Result<Self> {
        IssuerUrl::new(settings.issuer.clone()).context("the issuer is no address")?;
        let http = ProviderHttp::new(settings.issuer.starts_with("https:"));
        let (document, failure) = (RwLock::default(), Mutex::default());
        let provider = Arc::new(Provider { settings, http, document, failure });
        Ok(Self { provider, line: ProviderLine::start()?, asking: Arc::default() })
    }

    /// Asks the provider what it says of itself, and fails if that cannot be used. Blocks.
    pub fn greet(&self) -> anyhow::Result<()> {
        let document = self.provider.fetch(Instant::now() + TIMEOUT)?;
        self.provider.client(&document).map(drop)
    }

    /// Returns what the provider says of itself. One thread asks for it, even if that hangs; all that come meanwhile
    /// wait for the same answer, outside the line of those who bring a code.
    async fn document(&self) -> Result<Document, ProviderError> {
        let hangs = |_| ProviderError::Unavailable("the request hangs".into());
        let asked = async {
            let asking = Arc::clone(&self.asking).lock_owned().await;
            let provider = Arc::clone(&self.provider);
            let ask = tokio::task::spawn_blocking(move || {
                let _asking = asking;
                provider.document(Instant::now() + TIMEOUT)
            });
            ask.await.map_err(|error| ProviderError::Unavailable(error.into()))?
        };
        tokio::time::timeout(TIMEOUT + GRACE, asked).await.map_err(hangs)?
    }
}

#[async_trait]
impl IdentityProvider for OpenIdProvider {
    async fn begin(&self, round: &ProviderRound, is_anew: bool) -> Result<String, ProviderError> {
        // What is known needs no thread.
        let document = match self.provider.known(DOCUMENT_LIFE) {
            Some(document) => document,
            None => self.document().await?,
        };
        self.provider.begin(&document, round, is_anew)
    }

    async fn finish(
        &self,
        requester: Requester,
        round: &ProviderRound,
        code: &str,
        now: OffsetDateTime,
    ) -> Result<Identity, ProviderError> {
        let (provider, round, code) = (Arc::clone(&self.provider), round.clone(), code.to_owned());
        let finish = move || provider.finish(&round, code, now, Instant::now() + TIMEOUT);
        self.line.run_in_turn(requester, TIMEOUT + GRACE, finish).await
    }
}

impl Provider {
    /// Returns what the provider said of itself, if that is not older than this.
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
        let client = openidconnect::Client::from_provider_metadata(metadata.clone(), client_id, Some(secret));
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
        check(&claims, &self.settings.client_id, now).map_err(refused)?;
        if claims.email().is_some() {
            return identity(&claims, claims.email(), is_email_verified(&claims), claims.name());
        }
        // A provider may tell the address here alone (OpenID Connect Core, 5.4).
        let told = self.ask_for_person(&client, response.access_token().clone(), &claims, deadline);
        let told = told?.ok_or(ProviderError::NoVerifiedEmail)?;
        identity(&claims, told.email(), told.email_verified() == Some(true), told.name())
    }

    /// Returns what the provider says about the person of these claims. None: it has no place to ask at.
    fn ask_for_person(
        &self,
        client: &Client,
        token: AccessToken,
        claims: &Claims,
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

fn verifier(client: &Client, now: OffsetDateTime) -> CoreIdTokenVerifier<'_> {
    client.id_token_verifier().set_allowed_algs(ALGORITHMS).set_time_fn(move || SystemTime::from(now).into())
}

/// An error with its causes, for the log: not those that quote an answer, which may hold anything.
fn chain(error: impl std::error::Error + Send + Sync + 'static) -> anyhow::Error {
    anyhow!("{:#}", anyhow::Error::new(error))
}
