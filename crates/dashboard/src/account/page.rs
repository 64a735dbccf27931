//! Account: the member's own account, its second factor and its sessions.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use intake_domain::{PasskeyRecord, PasskeyStore, Passwords, Role, SessionStore};

use crate::account::email;
use crate::account::provider::SingleSignOn;
use crate::account::sessions::{self, SessionRow};
use crate::page::error::PageError;
use crate::page::part::{Members, Part};
use crate::page::shell::{Shell, render};
use crate::page::visitor::Visitor;

#[derive(Template)]
#[template(path = "account/page.html")]
struct AccountPage {
    shell: Shell,
    email: String,
    role: Role,
    is_second_factor_required: bool,
    /// Returns whether members sign in with passwords.
    has_passwords: bool,
    /// Name of the provider of single sign-on, and whether the account is linked to it, if there is one.
    provider: Option<(String, bool)>,
    /// True if anything can prove another address.
    may_change_email: bool,
    codes_left: Option<u32>,
    passkeys: Vec<PasskeyRecord>,
    sessions: Vec<SessionRow>,
}

pub(crate) async fn page(
    visitor: Visitor,
    factors: Part<dyn Members>,
    passkeys: Part<dyn PasskeyStore>,
    sessions: Part<dyn SessionStore>,
) -> Result<HttpResponse, PageError> {
    let member = &visitor.signed_in.member;
    let codes_left = factors.recovery_codes_left(member.id).await?;
    let (address, has_passwords) = (member.email.to_string(), visitor.shared::<Passwords>()?.are_on());
    let provider = visitor.shared::<Option<SingleSignOn>>()?.as_ref().map(|provider| provider.name.clone());
    let passkeys = passkeys.passkeys(member.id).await?;
    let is_linked = sessions.factors(member.id).await?.is_linked_to_provider;
    let page = AccountPage {
        shell: Shell::new("account", &visitor),
        email: address,
        role: member.role,
        is_second_factor_required: visitor.signed_in.is_second_factor_required,
        has_passwords,
        provider: provider.map(|name| (name, is_linked)),
        may_change_email: email::is_provable(&visitor).await?,
        codes_left,
        passkeys,
        sessions: sessions::rows(&visitor, sessions.as_ref()).await?,
    };
    render(StatusCode::OK, &page)
}
