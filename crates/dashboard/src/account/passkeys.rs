//! Account → Passkeys: adding and removing them.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Form, Path};
use askama::Template;
use intake_domain::{
    AddPasskeyError, Challenge, PASSKEYS_MAX, PasskeyRecord, PasskeyRegistration, PasskeyStore, Passwords,
    RelyingParty, TokenDigest, add_passkey, remove_passkey,
};
use serde::Deserialize;

use crate::account::ACCOUNT;
use crate::mails::AccountChange;
use crate::page::confirm::ConfirmPage;
use crate::page::error::PageError;
use crate::page::form_token::OwnForm;
use crate::page::notice::redirect_with_notice;
use crate::page::part::Part;
use crate::page::shell::{Shell, render};
use crate::page::visitor::{Newcomer, Visitor};

const ADDED: &str = "The passkey was added. You can sign in with it. You were signed out everywhere else.";
const ADDED_AS_FACTOR: &str = "The passkey was added, and you were signed out everywhere else.";
const REMOVED: &str = "The passkey was removed, and you were signed out everywhere else.";

#[derive(Template)]
#[template(path = "account/passkey_new.html")]
struct NewPasskeyPage {
    shell: Shell,
    challenge: String,
    host: String,
    user: String,
    email: String,
    /// The ids of the passkeys that the member has, so that no device makes a second one.
    known: String,
    name: String,
    name_error: Option<String>,
    alert: Option<String>,
    /// True if the passkey will sign in by itself.
    has_passwords: bool,
}

#[derive(Deserialize)]
pub(crate) struct NewPasskeyForm {
    form_token: String,
    name: String,
    credential: String,
    client_data: String,
    authenticator_data: String,
    public_key: String,
}

pub(crate) async fn page(
    Newcomer(visitor): Newcomer,
    passkeys: Part<dyn PasskeyStore>,
    site: Part<RelyingParty>,
) -> Result<HttpResponse, PageError> {
    // Before the device makes a passkey, which would stay there if the form were refused.
    visitor.assert_confirmed()?;
    render(StatusCode::OK, &NewPasskeyPage::new(&visitor, passkeys.as_ref(), &site, String::new()).await?)
}

pub(crate) async fn add(
    Newcomer(visitor): Newcomer,
    form: Form<NewPasskeyForm>,
    passkeys: Part<dyn PasskeyStore>,
    site: Part<RelyingParty>,
) -> Result<HttpResponse, PageError> {
    let confirmed = visitor.confirmed_by(&form.form_token)?;
    let NewPasskeyForm { name, credential, client_data, authenticator_data, public_key, .. } = form.into_inner();
    let registration =
        PasskeyRegistration::from_base64url([&credential, &client_data, &authenticator_data, &public_key]);
    let registration = registration.ok_or(PageError::BadForm)?;
    let page = NewPasskeyPage::new(&visitor, passkeys.as_ref(), &site, name.clone()).await?;
    let audit = visitor.audit();
    let added = add_passkey(passkeys.as_ref(), &site, confirmed, &name, &visitor.token, &registration, &audit);
    match added.await {
        Ok(()) => {
            visitor.mail_change(AccountChange::PasskeyAdded)?;
            Ok(redirect_with_notice(ACCOUNT, if page.has_passwords { ADDED } else { ADDED_AS_FACTOR }))
        }
        Err(AddPasskeyError::Name(error)) => {
            let name_error = Some(format!("The name {error}."));
            render(StatusCode::UNPROCESSABLE_ENTITY, &NewPasskeyPage { name_error, ..page })
        }
        Err(AddPasskeyError::Refused) => {
            let alert = Some("This passkey can't be used here. Try again, or use another device.".to_owned());
            render(StatusCode::UNPROCESSABLE_ENTITY, &NewPasskeyPage { alert, ..page })
        }
        Err(AddPasskeyError::TooMany) => {
            let alert = Some(format!("You have {PASSKEYS_MAX} passkeys, which is the limit. Remove one first."));
            render(StatusCode::CONFLICT, &NewPasskeyPage { alert, ..page })
        }
        Err(AddPasskeyError::Store(error)) => Err(error.into()),
    }
}

pub(crate) async fn ask_to_remove(
    visitor: Visitor,
    id: Path<String>,
    passkeys: Part<dyn PasskeyStore>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_confirmed()?;
    let passkey = own_passkey(&visitor, &id, passkeys.as_ref()).await?;
    confirm_page(&visitor, &passkey).ask()
}

pub(crate) async fn remove(
    OwnForm(visitor): OwnForm<Visitor>,
    id: Path<String>,
    passkeys: Part<dyn PasskeyStore>,
) -> Result<HttpResponse, PageError> {
    let passkey = own_passkey(&visitor, &id, passkeys.as_ref()).await?;
    let confirmed = visitor.confirmed()?;
    if !remove_passkey(passkeys.as_ref(), confirmed, &passkey.id, &visitor.audit()).await? {
        return Err(PageError::NotFound);
    }
    visitor.mail_change(AccountChange::PasskeyRemoved)?;
    Ok(redirect_with_notice(ACCOUNT, REMOVED))
}

async fn own_passkey(visitor: &Visitor, id: &str, passkeys: &dyn PasskeyStore) -> Result<PasskeyRecord, PageError> {
    let id = TokenDigest::from_hexadecimal(id).ok_or(PageError::NotFound)?;
    let own = passkeys.passkeys(visitor.signed_in.member.id).await?;
    own.into_iter().find(|passkey| passkey.id == id).ok_or(PageError::NotFound)
}

fn confirm_page(visitor: &Visitor, passkey: &PasskeyRecord) -> ConfirmPage<'static> {
    ConfirmPage {
        shell: Shell::new("account", visitor),
        title: format!("Remove the passkey “{}”?", passkey.name),
        text: "You will no longer be able to sign in with it. Delete it from your device or password manager as well.",
        action: format!("/settings/account/passkeys/{}/remove", passkey.id.to_hexadecimal()),
        button: "Remove passkey",
        is_danger: true,
        back: "/settings/account",
    }
}

impl NewPasskeyPage {
    async fn new(
        visitor: &Visitor,
        passkeys: &dyn PasskeyStore,
        site: &RelyingParty,
        name: String,
    ) -> Result<Self, PageError> {
        let (member, has_passwords) = (&visitor.signed_in.member, visitor.shared::<Passwords>()?.are_on());
        let known = passkeys.passkeys(member.id).await?;
        let known: Vec<_> = known.iter().map(PasskeyRecord::credential_as_base64url).collect();
        Ok(Self {
            shell: Shell::new("account", visitor),
            challenge: Challenge::of(&visitor.token).as_base64url().to_owned(),
            host: site.host().to_owned(),
            user: member.id.to_string(),
            email: member.email.to_string(),
            known: known.join(" "),
            name,
            name_error: None,
            alert: None,
            has_passwords,
        })
    }
}
