//! Creating a key.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Form;
use askama::Template;
use intake_domain::{
    AllowedNetworks, IssuedKey, KeyContact, KeyFormat, KeyId, KeyRecord, KeyRequest, KeySecret, Name, NameError,
    create_key, list_keys,
};
use intake_edge as edge;
use serde::Deserialize;

use crate::api_keys::LIST;
use crate::api_keys::created::{Namesake, show_made};
use crate::api_keys::expiry::{Expiry, ExpiryFields};
use crate::api_keys::key_text::{Kind, TextField};
use crate::api_keys::networks::NetworksField;
use crate::mails::{KeyChange, MailedKey};
use crate::page::error::PageError;
use crate::page::part::{Keys, Part};
use crate::page::shell::{Shell, render};
use crate::page::visitor::{KeyManager, Visitor};

#[derive(Template)]
#[template(path = "api_keys/new.html")]
struct NewKeyPage<'a> {
    shell: Shell,
    id: String,
    name: &'a str,
    name_error: Option<NameError>,
    contact: TextField,
    expiry: ExpiryFields,
    networks: NetworksField,
}

#[derive(Deserialize)]
pub(crate) struct NewKeyForm {
    form_token: String,
    id: String,
    name: String,
    #[serde(flatten)]
    expiry: Expiry,
    #[serde(default)]
    contact: String,
    #[serde(default)]
    networks: String,
}

pub(crate) async fn form(KeyManager(visitor): KeyManager) -> Result<HttpResponse, PageError> {
    // The form carries the id of the key to be made, so that sending it twice makes one key.
    let id = KeyId::new(edge::now(), edge::random()).to_string();
    let shell = Shell::new("keys", &visitor);
    let draft = visitor.draft();
    let [name, contact, networks] =
        ["name", "contact", "networks"].map(|field| draft.as_ref().map(|draft| draft.field(field)).unwrap_or_default());
    let expiry = draft.as_ref().map(Expiry::of_draft).unwrap_or_default();
    let page = NewKeyPage {
        shell,
        id,
        name: &name,
        name_error: None,
        contact: TextField::new(Kind::Contact, contact, None),
        expiry: expiry.fields(None, &visitor.signed_in, None, edge::now()),
        networks: NetworksField::new(networks, None),
    };
    render(StatusCode::OK, &page)
}

pub(crate) async fn create(
    KeyManager(visitor): KeyManager,
    form: Form<NewKeyForm>,
    keys: Part<dyn Keys>,
    format: Part<KeyFormat>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let id: KeyId = form.id.parse().map_err(|_| PageError::BadForm)?;
    let audit = visitor.audit();
    let networks = form.networks.parse::<AllowedNetworks>();
    let (name, contact) = (Name::new(form.name.as_str()), KeyContact::new(&form.contact));
    let (name, contact, expires_at, allowed_networks) =
        match (name, contact, form.expiry.end(audit.at, None, &visitor.signed_in), networks) {
            (Ok(name), Ok(contact), Ok(expires_at), Ok(networks)) => (name, contact, expires_at, networks),
            (name, contact, expires_at, networks) => {
                let page = NewKeyPage {
                    shell: Shell::new("keys", &visitor),
                    id: form.id.clone(),
                    name: &form.name,
                    name_error: name.err(),
                    contact: TextField::new(Kind::Contact, &form.contact, contact.err().map(|error| error.to_string())),
                    expiry: form.expiry.fields(None, &visitor.signed_in, expires_at.err(), audit.at),
                    networks: NetworksField::new(&form.networks, networks.err()),
                };
                return render(StatusCode::UNPROCESSABLE_ENTITY, &page);
            }
        };
    let organisation_id = visitor.organisation();
    let secret = KeySecret::new(edge::random());
    let request = KeyRequest {
        organisation_id,
        name,
        expires_at,
        allowed_networks,
        contact: contact.clone(),
        replaces: None,
        id,
        secret,
    };
    let made = create_key(keys.as_ref(), &format, request, &audit).await;
    let mut namesake = None;
    if let Ok(made) = &made {
        let key = MailedKey { name: made.name.as_str(), hint: made.key.hint(), contact: contact.as_str() };
        visitor.mail_key(key, KeyChange::Created).await?;
        namesake = other_with_name(&visitor, keys.as_ref(), made).await?;
    }
    show_made(&visitor, made, id, LIST, None, namesake)
}

/// Another working key with this name, which the new one may be meant to replace.
async fn other_with_name(visitor: &Visitor, keys: &dyn Keys, made: &IssuedKey) -> Result<Option<Namesake>, PageError> {
    let now = edge::now();
    let all = list_keys(keys, visitor.organisation()).await?;
    let is_other = |key: &KeyRecord| key.name == made.name.as_str() && key.id != made.id && key.status(now).is_active();
    let found = all.into_iter().rev().find(is_other);
    Ok(found.map(|key| Namesake { link: format!("{LIST}/{}", key.id), hint: key.hint }))
}
