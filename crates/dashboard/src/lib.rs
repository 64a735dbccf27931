//! The dashboard, where the members of an organisation look after its API keys: HTML pages made by the server, which
//! work without scripts. Every asset is built into the program; nothing is loaded from elsewhere.

mod account;
mod activity;
mod api_keys;
mod digests;
mod docs;
mod mails;
mod members;
mod metrics;
mod page;
mod single_sign_on;
mod unusual_keys;

use std::sync::Arc;

use actix_web::middleware::from_fn;
use actix_web::web::{Data, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, Scope, web};
use intake_domain::{
    AccountStore, AllowedNetworksStore, AuditLog, EmailChangeStore, InvitationStore, KeyActivity, KeyAgeStore,
    KeyDescriptionStore, KeyFormat, KeyList, KeyPauseStore, KeyRevocationStore, KeyStore, MemberStore, PasskeyStore,
    PasswordHasher, PasswordResetStore, RelyingParty, SecondFactorStore, SessionStore, Signatures,
};
use intake_http::TrustedProxies;

pub use account::provider::SingleSignOn;
pub use account::reset_password::reset_password_path;
pub use mails::Mails;
pub use metrics::write_metrics;
pub use page::invitation_path::invitation_path;

use docs::Documentation;
use page::base_url::{Authority, BaseUrl};
use page::error::PageError;
use page::refusal_records::RefusalRecords;
use page::sent_text::FORM_MAX;
use page::throttle::Throttle;
use page::{assets, guard};

/// The pages, with everything that they need.
pub struct Dashboard {
    /// Stores new keys.
    pub keys: Arc<dyn KeyStore>,
    /// The keys of organisations.
    pub key_list: Arc<dyn KeyList>,
    /// The names of keys and the notes about them.
    pub key_descriptions: Arc<dyn KeyDescriptionStore>,
    /// Pauses keys and resumes them.
    pub key_pauses: Arc<dyn KeyPauseStore>,
    /// Revokes keys.
    pub key_revocations: Arc<dyn KeyRevocationStore>,
    /// The networks from which keys are accepted.
    pub allowed_networks: Arc<dyn AllowedNetworksStore>,
    /// The maximum age of keys.
    pub key_age: Arc<dyn KeyAgeStore>,
    /// Records how requests with the keys were answered.
    pub activity: Arc<dyn KeyActivity>,
    /// Members of organisations.
    pub members: Arc<dyn MemberStore>,
    /// Invitations of members to be.
    pub invitations: Arc<dyn InvitationStore>,
    /// Names, addresses and passwords of members.
    pub accounts: Arc<dyn AccountStore>,
    /// Addresses that wait to be confirmed.
    pub email_changes: Arc<dyn EmailChangeStore>,
    /// Reset links of members.
    pub password_resets: Arc<dyn PasswordResetStore>,
    /// Second factors of members.
    pub second_factors: Arc<dyn SecondFactorStore>,
    /// Passkeys of members.
    pub passkeys: Arc<dyn PasskeyStore>,
    /// Checks the signatures of passkeys.
    pub signatures: Arc<dyn Signatures>,
    /// Who is signed in.
    pub sessions: Arc<dyn SessionStore>,
    /// The record of what members and operators did.
    pub log: Arc<dyn AuditLog>,
    /// Hashes passwords.
    pub hasher: Arc<dyn PasswordHasher>,
    /// The provider of single sign-on, if there is one.
    pub single_sign_on: Option<SingleSignOn>,
    /// Sends mails, if there is a mail server.
    pub mails: Mails,
    /// Format of keys.
    pub format: KeyFormat,
    /// The proxies that are believed.
    pub proxies: TrustedProxies,
    /// The address that browsers and integrations know the service by, without a slash at its end.
    pub base_url: String,
    /// The file with the certificate authority that programs have to trust, as a word for a shell. None: a public one.
    pub authority: Option<String>,
}

impl Dashboard {
    /// Returns what adds the pages to an application, and answers for every path that nothing is at. The applications
    /// of all workers share what it holds.
    pub fn configure(self) -> impl Fn(&mut ServiceConfig) + Clone + Send {
        let passwords = self.single_sign_on.as_ref().map(|provider| provider.passwords).unwrap_or_default();
        // Of the pages alone: the API beside them has its own.
        let shared = [
            shared(Documentation::new(&self.base_url, &self.format)),
            shared(RelyingParty::of(&self.base_url)),
            shared(BaseUrl(self.base_url)),
            shared(Authority(self.authority)),
            shared(Throttle::new()),
            shared(RefusalRecords::new()),
            shared(passwords),
            shared(self.single_sign_on),
            shared(self.mails),
            shared(self.format),
            shared(self.proxies),
            of_port(self.keys),
            of_port(self.key_list),
            of_port(self.key_descriptions),
            of_port(self.key_pauses),
            of_port(self.key_revocations),
            of_port(self.allowed_networks),
            of_port(self.key_age),
            of_port(self.activity),
            of_port(self.members),
            of_port(self.invitations),
            of_port(self.accounts),
            of_port(self.email_changes),
            of_port(self.password_resets),
            of_port(self.second_factors),
            of_port(self.passkeys),
            of_port(self.signatures),
            of_port(self.sessions),
            of_port(self.log),
            of_port(self.hasher),
        ];
        move |application| {
            let pages = shared.iter().fold(pages(), |pages, share| share(pages));
            application.service(pages.wrap(from_fn(guard::guard)));
        }
    }
}

/// Gives the pages of a worker what all workers share.
type Share = Arc<dyn Fn(Scope) -> Scope + Send + Sync>;

fn shared<T: Send + Sync + 'static>(value: T) -> Share {
    of_port(Arc::new(value))
}

fn of_port<T: ?Sized + Send + Sync + 'static>(port: Arc<T>) -> Share {
    let data = Data::from(port);
    Arc::new(move |pages| pages.app_data(data.clone()))
}

fn pages() -> Scope {
    let form = web::FormConfig::default().limit(FORM_MAX).error_handler(|_, _| PageError::BadForm.into());
    let folders =
        [account::routes::routes, api_keys::routes::routes, members::routes::routes, activity::routes, docs::routes];
    let pages = web::scope("")
        .app_data(form)
        .route("/sign-in/provider/return", web::get().to(single_sign_on::come_back))
        .route("/assets/{name}", web::get().to(assets::asset));
    folders.into_iter().fold(pages, |pages, routes| routes(pages)).default_service(web::to(not_found))
}

/// Answers browsers with a page, and other programs with the API's error.
async fn not_found(request: HttpRequest, payload: web::Payload) -> HttpResponse {
    let accept = request.headers().get(actix_web::http::header::ACCEPT).and_then(|value| value.to_str().ok());
    let is_page = accept.is_some_and(|accept| accept.contains("text/html")) && !request.path().starts_with("/api/");
    if is_page { HttpResponse::from_error(PageError::NotFound) } else { intake_http::not_found(request, payload).await }
}
