//! Settings → Account → Passkeys: adding and removing them.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path};
use askama::Template;
use intake_domain::{
    AddPasskeyError, Challenge, PASSKEYS_MAX, PasskeyRecord, PasskeyRegistration, PasskeyStore, RelyingParty,
    RemovePasskeyOutcome, TokenDigest, add_passkey, remove_passkey,
};
use serde::Deserialize;

use crate::account::page::{PASSKEY_ADDED, PASSKEY_REMOVED};
use crate::page::confirm_password::{ConfirmPasswordPage, PasswordForm, confirm};
use crate::page::error::PageError;
use crate::page::moment::{exact, relative};
use crate::page::shell::{Shell, redirect, render};
use crate::page::visitor::Visitor;

/// A passkey, as the account's page lists it.
pub(crate) struct PasskeyRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) created_at: String,
    pub(crate) last_used_at: Option<String>,
}

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
    password_error: Option<String>,
    alert: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct NewPasskeyForm {
    form_token: String,
    name: String,
    password: String,
    credential: String,
    client_data: String,
    authenticator_data: String,
    public_key: String,
}

pub(crate) async fn page(
    visitor: Visitor,
    passkeys: Data<dyn PasskeyStore>,
    site: Data<RelyingParty>,
) -> Result<HttpResponse, PageError> {
    render(StatusCode::OK, &NewPasskeyPage::new(&visitor, passkeys.as_ref(), &site, String::new()).await?)
}

pub(crate) async fn add(
    visitor: Visitor,
    form: Form<NewPasskeyForm>,
    passkeys: Data<dyn PasskeyStore>,
    site: Data<RelyingParty>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let NewPasskeyForm { name, password, credential, client_data, authenticator_data, public_key, .. } =
        form.into_inner();
    let registration =
        PasskeyRegistration::from_base64url([&credential, &client_data, &authenticator_data, &public_key]);
    let registration = registration.ok_or(PageError::BadForm)?;
    let page = NewPasskeyPage::new(&visitor, passkeys.as_ref(), &site, name.clone()).await?;
    let confirmed = match confirm(&visitor, password).await? {
        Ok(confirmed) => confirmed,
        Err(refusal) => {
            return render(refusal.status, &NewPasskeyPage { password_error: Some(refusal.text), ..page });
        }
    };
    let deed = visitor.deed();
    let added = add_passkey(passkeys.as_ref(), &site, confirmed, &name, &visitor.token, &registration, &deed);
    match added.await {
        Ok(()) => Ok(redirect(&format!("/settings/account?{PASSKEY_ADDED}"))),
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
    passkeys: Data<dyn PasskeyStore>,
) -> Result<HttpResponse, PageError> {
    let passkey = own_passkey(&visitor, &id, passkeys.as_ref()).await?;
    confirm_page(&visitor, &passkey).ask()
}

pub(crate) async fn remove(
    visitor: Visitor,
    id: Path<String>,
    form: Form<PasswordForm>,
    passkeys: Data<dyn PasskeyStore>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let passkey = own_passkey(&visitor, &id, passkeys.as_ref()).await?;
    let confirmed = match confirm(&visitor, form.into_inner().password).await? {
        Ok(confirmed) => confirmed,
        Err(refusal) => return confirm_page(&visitor, &passkey).ask_again(refusal),
    };
    match remove_passkey(passkeys.as_ref(), confirmed, &passkey.id, &visitor.deed()).await? {
        RemovePasskeyOutcome::Removed => Ok(redirect(&format!("/settings/account?{PASSKEY_REMOVED}"))),
        RemovePasskeyOutcome::NoSuchPasskey => Err(PageError::NotFound),
    }
}

async fn own_passkey(visitor: &Visitor, id: &str, passkeys: &dyn PasskeyStore) -> Result<PasskeyRecord, PageError> {
    let id = TokenDigest::from_hexadecimal(id).ok_or(PageError::NotFound)?;
    let own = passkeys.passkeys(visitor.signed_in.member.id).await?;
    own.into_iter().find(|passkey| passkey.id == id).ok_or(PageError::NotFound)
}

fn confirm_page(visitor: &Visitor, passkey: &PasskeyRecord) -> ConfirmPasswordPage {
    ConfirmPasswordPage {
        shell: Shell::new("account", visitor),
        title: format!("Remove the passkey “{}”?", passkey.name),
        text: "Nobody can sign in with it any more. Delete it from your device or password manager as well.".to_owned(),
        action: format!("/settings/account/passkeys/{}/remove", passkey.id.to_hexadecimal()),
        button: "Remove passkey",
        is_danger: true,
        back: "/settings/account",
        password_error: None,
    }
}

impl NewPasskeyPage {
    async fn new(
        visitor: &Visitor,
        passkeys: &dyn PasskeyStore,
        site: &RelyingParty,
        name: String,
    ) -> Result<Self, PageError> {
        let member = &visitor.signed_in.member;
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
            password_error: None,
            alert: None,
        })
    }
}

impl From<PasskeyRecord> for PasskeyRow {
    fn from(passkey: PasskeyRecord) -> Self {
        Self {
            id: passkey.id.to_hexadecimal(),
            name: passkey.name,
            created_at: exact(passkey.created_at),
            last_used_at: passkey.last_used_at.map(relative),
        }
    }
}
