//! The dashboard, where the members of an organisation look after its API keys: HTML pages made by the server, which
//! work without scripts. Every asset is built into the program; nothing is loaded from elsewhere.

mod account;
mod activity;
mod api_keys;
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
use account::{
    choose_organisation, confirm, email, forgotten_password, name, page as account_page, passkeys, password,
    reset_password, second_factor, sessions, sign_in, sign_in_passkey, sign_in_provider,
};
use api_keys::{create, created, first_steps, list as key_list, networks, note, pause, rename, replace, revoke, usage};
pub use mails::Mails;
pub use metrics::write_metrics;
pub use page::invitation_path::invitation_path;

use docs::Documentation;
use members::{
    invitation, invitation_provider, invite, key_age, list as member_list, member, remove,
    reset_password as member_reset, role, two_step_sign_in, withdraw_invitation,
};
use page::base_url::{Authority, BaseUrl};
use page::error::PageError;
use page::throttle::Throttle;
use page::{assets, guard};

/// Larger than any form here.
const FORM_MAX: usize = 16 * 1024;

/// The pages, with everything that they need.
pub struct Dashboard {
    /// What stores new keys.
    pub keys: Arc<dyn KeyStore>,
    /// The keys of organisations.
    pub key_list: Arc<dyn KeyList>,
    /// What people call keys and know about them.
    pub key_descriptions: Arc<dyn KeyDescriptionStore>,
    /// What pauses keys and resumes them.
    pub key_pauses: Arc<dyn KeyPauseStore>,
    /// What revokes keys.
    pub key_revocations: Arc<dyn KeyRevocationStore>,
    /// The networks from which keys are accepted.
    pub allowed_networks: Arc<dyn AllowedNetworksStore>,
    /// The maximum age of keys.
    pub key_age: Arc<dyn KeyAgeStore>,
    /// How requests with the keys were answered.
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
    /// What checks the signatures of passkeys.
    pub signatures: Arc<dyn Signatures>,
    /// Who is signed in.
    pub sessions: Arc<dyn SessionStore>,
    /// The record of what members and operators did.
    pub log: Arc<dyn AuditLog>,
    /// What hashes passwords.
    pub hasher: Arc<dyn PasswordHasher>,
    /// The provider of single sign-on, if there is one.
    pub single_sign_on: Option<SingleSignOn>,
    /// What sends mails, if anything does.
    pub mails: Mails,
    /// What keys look like.
    pub format: KeyFormat,
    /// The proxies that are believed.
    pub proxies: TrustedProxies,
    /// The address that browsers and integrations know the service by, without a slash at its end.
    pub base_url: String,
    /// The file with the certificate authority that programs have to trust, as a word for a shell. None: a public one.
    pub authority: Option<String>,
}

impl Dashboard {
    /// What adds the pages to an application, and answers for every path that nothing is at. The applications of all
    /// workers share what it holds.
    pub fn configure(self) -> impl Fn(&mut ServiceConfig) + Clone + Send {
        let documentation = Documentation::new(&self.base_url, &self.format);
        let documentation = Data::new(documentation);
        let (keys, key_list) = (Data::from(self.keys), Data::from(self.key_list));
        let (descriptions, activity) = (Data::from(self.key_descriptions), Data::from(self.activity));
        let (pauses, revocations) = (Data::from(self.key_pauses), Data::from(self.key_revocations));
        let (networks, key_age) = (Data::from(self.allowed_networks), Data::from(self.key_age));
        let (members, invitations) = (Data::from(self.members), Data::from(self.invitations));
        let (accounts, email_changes) = (Data::from(self.accounts), Data::from(self.email_changes));
        let (resets, factors) = (Data::from(self.password_resets), Data::from(self.second_factors));
        let (sessions, log) = (Data::from(self.sessions), Data::from(self.log));
        let (passkeys, signatures) = (Data::from(self.passkeys), Data::from(self.signatures));
        let site = Data::new(RelyingParty::of(&self.base_url));
        let (hasher, format) = (Data::from(self.hasher), Data::new(self.format));
        let (proxies, base_url) = (Data::new(self.proxies), Data::new(BaseUrl(self.base_url)));
        let (mails, authority) = (Data::new(self.mails), Data::new(Authority(self.authority)));
        let passwords = self.single_sign_on.as_ref().map(|provider| provider.passwords).unwrap_or_default();
        let (single_sign_on, passwords) = (Data::new(self.single_sign_on), Data::new(passwords));
        let throttle = Data::new(Throttle::new());
        // Of the pages alone: the interface beside them has its own.
        move |application| {
            let pages = pages()
                .app_data(keys.clone())
                .app_data(key_list.clone())
                .app_data(descriptions.clone())
                .app_data(pauses.clone())
                .app_data(revocations.clone())
                .app_data(networks.clone())
                .app_data(key_age.clone())
                .app_data(activity.clone())
                .app_data(members.clone())
                .app_data(invitations.clone())
                .app_data(accounts.clone())
                .app_data(email_changes.clone())
                .app_data(resets.clone())
                .app_data(factors.clone())
                .app_data(passkeys.clone())
                .app_data(signatures.clone())
                .app_data(site.clone())
                .app_data(sessions.clone())
                .app_data(log.clone())
                .app_data(hasher.clone())
                .app_data(format.clone())
                .app_data(proxies.clone())
                .app_data(base_url.clone())
                .app_data(single_sign_on.clone())
                .app_data(passwords.clone())
                .app_data(throttle.clone())
                .app_data(mails.clone())
                .app_data(authority.clone())
                .app_data(documentation.clone())
                .wrap(from_fn(guard::guard));
            application.service(pages);
        }
    }
}

fn pages() -> Scope {
    let form = web::FormConfig::default().limit(FORM_MAX).error_handler(|_, _| PageError::BadForm.into());
    web::scope("")
        .app_data(form)
        .route("/", web::get().to(key_list::home))
        .route("/sign-in", web::get().to(sign_in::page))
        .route("/sign-in", web::post().to(sign_in::submit))
        .route("/sign-in/code", web::get().to(sign_in::code_page))
        .route("/sign-in/code", web::post().to(sign_in::submit_code))
        .route("/sign-in/code/passkey", web::post().to(sign_in_passkey::submit_as_code))
        .route("/sign-in/passkey", web::get().to(sign_in_passkey::page))
        .route("/sign-in/passkey", web::post().to(sign_in_passkey::begin))
        .route("/sign-in/passkey/use", web::post().to(sign_in_passkey::submit))
        .route("/sign-in/provider", web::get().to(sign_in_provider::begin))
        .route("/sign-in/provider/return", web::get().to(single_sign_on::come_back))
        .route("/choose-organisation", web::get().to(choose_organisation::page))
        .route("/choose-organisation", web::post().to(choose_organisation::choose))
        .route("/sign-out", web::post().to(sign_in::sign_out))
        .route("/invitations/{token}", web::get().to(invitation::page))
        .route("/invitations/{token}", web::post().to(invitation::submit))
        .route("/invitations/{token}/provider", web::get().to(invitation_provider::begin))
        .route("/confirm-email/{token}", web::get().to(email::confirm_page))
        .route("/confirm-email/{token}", web::post().to(email::confirm_new))
        .route("/forgotten-password", web::get().to(forgotten_password::page))
        .route("/forgotten-password", web::post().to(forgotten_password::submit))
        .route("/reset-password/{token}", web::get().to(reset_password::page))
        .route("/reset-password/{token}", web::post().to(reset_password::submit))
        .route("/settings", web::get().to(key_list::home))
        .route("/settings/first-steps", web::post().to(first_steps::hide))
        .route("/settings/api-keys", web::get().to(key_list::page))
        .route("/settings/api-keys", web::post().to(create::create))
        .route("/settings/api-keys/new", web::get().to(create::form))
        .route("/settings/api-keys/{key}", web::get().to(usage::page))
        .route("/settings/api-keys/{key}/first-use", web::get().to(created::first_use))
        .route("/settings/api-keys/{key}/revoke", web::get().to(revoke::confirm))
        .route("/settings/api-keys/{key}/revoke", web::post().to(revoke::revoke))
        .route("/settings/api-keys/{key}/networks", web::get().to(networks::page))
        .route("/settings/api-keys/{key}/networks", web::post().to(networks::save))
        .route("/settings/api-keys/{key}/pause", web::get().to(pause::confirm))
        .route("/settings/api-keys/{key}/pause", web::post().to(pause::pause))
        .route("/settings/api-keys/{key}/resume", web::post().to(pause::resume))
        .route("/settings/api-keys/{key}/rename", web::get().to(rename::page))
        .route("/settings/api-keys/{key}/rename", web::post().to(rename::rename))
        .route("/settings/api-keys/{key}/note", web::get().to(note::page))
        .route("/settings/api-keys/{key}/note", web::post().to(note::write))
        .route("/settings/api-keys/{key}/replace", web::get().to(replace::page))
        .route("/settings/api-keys/{key}/replace", web::post().to(replace::submit))
        .route("/settings/members", web::get().to(member_list::page))
        .route("/settings/members", web::post().to(invite::invite))
        .route("/settings/members/key-age", web::get().to(key_age::page))
        .route("/settings/members/key-age", web::post().to(key_age::limit))
        .route("/settings/members/require-two-step-sign-in", web::get().to(two_step_sign_in::confirm_require))
        .route("/settings/members/require-two-step-sign-in", web::post().to(two_step_sign_in::require))
        .route(
            "/settings/members/stop-requiring-two-step-sign-in",
            web::get().to(two_step_sign_in::confirm_stop_requiring),
        )
        .route("/settings/members/stop-requiring-two-step-sign-in", web::post().to(two_step_sign_in::stop_requiring))
        .route("/settings/members/{member}", web::get().to(member::page))
        .route("/settings/members/{member}/remove", web::get().to(remove::ask))
        .route("/settings/members/{member}/remove", web::post().to(remove::remove))
        .route("/settings/members/{member}/role", web::get().to(role::page))
        .route("/settings/members/{member}/role", web::post().to(role::change))
        .route("/settings/members/{member}/reset-password", web::get().to(member_reset::ask))
        .route("/settings/members/{member}/reset-password", web::post().to(member_reset::create))
        .route("/settings/members/{member}/reset-second-factor", web::get().to(members::reset_second_factor::ask))
        .route("/settings/members/{member}/reset-second-factor", web::post().to(members::reset_second_factor::reset))
        .route("/settings/members/invitations/{invitation}/resend", web::get().to(invite::ask_again))
        .route("/settings/members/invitations/{invitation}/resend", web::post().to(invite::again))
        .route("/settings/members/invitations/{invitation}/withdraw", web::get().to(withdraw_invitation::confirm))
        .route("/settings/members/invitations/{invitation}/withdraw", web::post().to(withdraw_invitation::withdraw))
        .route("/settings/activity", web::get().to(activity::page))
        .route("/settings/activity.csv", web::get().to(activity::download))
        .route("/settings/confirm", web::get().to(confirm::page))
        .route("/settings/confirm", web::post().to(confirm::submit))
        .route("/settings/confirm/passkey", web::post().to(confirm::submit_passkey))
        .route("/settings/confirm/provider", web::get().to(sign_in_provider::begin_confirmation))
        .route("/settings/account", web::get().to(account_page::page))
        .route("/settings/account/name", web::get().to(name::page))
        .route("/settings/account/name", web::post().to(name::change))
        .route("/settings/account/email", web::get().to(email::page))
        .route("/settings/account/email", web::post().to(email::change))
        .route("/settings/account/password", web::get().to(password::page))
        .route("/settings/account/password", web::post().to(password::change))
        .route("/settings/account/second-factor", web::get().to(second_factor::page))
        .route("/settings/account/second-factor", web::post().to(second_factor::turn_on))
        .route("/settings/account/second-factor/turn-off", web::get().to(second_factor::confirm_turn_off))
        .route("/settings/account/second-factor/turn-off", web::post().to(second_factor::turn_off))
        .route("/settings/account/recovery-codes", web::get().to(second_factor::confirm_replace))
        .route("/settings/account/recovery-codes", web::post().to(second_factor::replace))
        .route("/settings/account/passkeys/new", web::get().to(passkeys::page))
        .route("/settings/account/passkeys/new", web::post().to(passkeys::add))
        .route("/settings/account/passkeys/{passkey}/remove", web::get().to(passkeys::ask_to_remove))
        .route("/settings/account/passkeys/{passkey}/remove", web::post().to(passkeys::remove))
        .route("/settings/account/sessions/end-others", web::post().to(sessions::end_others))
        .route("/settings/account/sessions/{session}/end", web::post().to(sessions::end))
        .route("/docs", web::get().to(docs::page))
        .route("/docs.md", web::get().to(docs::markdown))
        .route("/llms.txt", web::get().to(docs::llms))
        .route("/assets/{name}", web::get().to(assets::asset))
        .default_service(web::to(not_found))
}

/// Answers browsers with a page, and other programs with the API's error.
async fn not_found(request: HttpRequest, payload: web::Payload) -> HttpResponse {
    let accept = request.headers().get(actix_web::http::header::ACCEPT).and_then(|value| value.to_str().ok());
    let is_page = accept.is_some_and(|accept| accept.contains("text/html")) && !request.path().starts_with("/api/");
    if is_page { HttpResponse::from_error(PageError::NotFound) } else { intake_http::not_found(request, payload).await }
}
