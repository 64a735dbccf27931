//! The dashboard, where the members of an organisation look after its API keys: HTML pages made by the server, which
//! work without scripts. Every asset is built into the program; nothing is loaded from elsewhere.

mod account;
mod activity;
mod api_keys;
mod components;
mod digests;
mod docs;
mod help;
mod mails;
mod members;
mod metrics;
mod page;
mod policies;
mod single_sign_on;
mod stopped_keys;
mod unusual_keys;

use std::sync::Arc;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::{Next, from_fn};
use actix_web::web::ServiceConfig;
use actix_web::{Error, Scope, web};
use intake_domain::{
    AuditLog, KeyActivity, KeyFormat, PasskeyStore, PasswordHasher, Passwords, RelyingParty, SessionStore, Signatures,
};
use intake_http::TrustedProxies;

pub use account::provider::SingleSignOn;
pub use account::reset_password::reset_password_path;
pub use mails::Mails;
pub use metrics::write_metrics;
pub use page::invitation_path::invitation_path;
pub use page::part::{Keys, Members};

use docs::Documentation;
use page::base_url::{Authority, BaseUrl};
use page::error::PageError;
use page::part::Shared;
use page::refusal_records::RefusalRecords;
use page::router::Pages;
use page::sent_text::FORM_MAX;
use page::throttle::Throttle;
use page::{assets, guard};

/// The pages, with everything that they need.
pub struct Dashboard {
    /// The keys of organisations.
    pub keys: Arc<dyn Keys>,
    /// Records how requests with the keys were answered.
    pub activity: Arc<dyn KeyActivity>,
    /// Members of organisations.
    pub members: Arc<dyn Members>,
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
        let parts = Arc::new(Parts {
            documentation: Arc::new(Documentation::new(&self.base_url, &self.format)),
            site: Arc::new(RelyingParty::of(&self.base_url)),
            base_url: Arc::new(BaseUrl(self.base_url)),
            authority: Arc::new(Authority(self.authority)),
            throttle: Arc::new(Throttle::new()),
            refusal_records: Arc::new(RefusalRecords::new()),
            passwords: Arc::new(passwords),
            single_sign_on: Arc::new(self.single_sign_on),
            mails: Arc::new(self.mails),
            format: Arc::new(self.format),
            proxies: Arc::new(self.proxies),
            keys: self.keys,
            activity: self.activity,
            members: self.members,
            passkeys: self.passkeys,
            signatures: self.signatures,
            sessions: self.sessions,
            log: self.log,
            hasher: self.hasher,
        });
        move |application| {
            application.service(parts.add_to(pages()).wrap(from_fn(guard::guard)).wrap(from_fn(head_as_get)));
        }
    }
}

macro_rules! parts {
    ($($name:ident: $part:ty,)*) => {
        /// Everything that the pages of all workers share.
        struct Parts {
            $($name: Arc<$part>,)*
        }

        $(impl Shared for $part {})*

        impl Parts {
            fn add_to(&self, pages: Scope) -> Scope {
                pages$(.app_data(Arc::clone(&self.$name)))*
            }
        }
    };
}

parts! {
    keys: dyn Keys,
    activity: dyn KeyActivity,
    members: dyn Members,
    passkeys: dyn PasskeyStore,
    signatures: dyn Signatures,
    sessions: dyn SessionStore,
    log: dyn AuditLog,
    hasher: dyn PasswordHasher,
    single_sign_on: Option<SingleSignOn>,
    passwords: Passwords,
    mails: Mails,
    format: KeyFormat,
    proxies: TrustedProxies,
    site: RelyingParty,
    base_url: BaseUrl,
    authority: Authority,
    documentation: Documentation,
    throttle: Throttle,
    refusal_records: RefusalRecords,
}

fn pages() -> Scope {
    let form = web::FormConfig::default().limit(FORM_MAX).error_handler(|_, _| PageError::BadForm.into());
    let folders = [
        account::routes::routes,
        api_keys::routes::routes,
        members::routes::routes,
        policies::routes,
        activity::routes,
        components::routes,
        help::routes,
        docs::routes,
    ];
    let pages = Pages::default()
        .get("/sign-in/provider/return", single_sign_on::come_back)
        .get("/assets/{name}", assets::asset);
    let pages = folders.into_iter().fold(pages, |pages, routes| routes(pages));
    pages.add_to(web::scope("").app_data(form))
}

/// Serves HEAD like GET. The body is left out where answers are written.
async fn head_as_get(
    mut request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    if request.method() == Method::HEAD {
        request.head_mut().method = Method::GET;
    }
    next.call(request).await
}
