//! Creating a key.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Form;
use askama::Template;
use intake_domain::{AllowedNetworks, KeyFormat, KeyId, KeyRequest, KeySecret, Name, NameError, create_key};
use intake_edge as edge;
use serde::Deserialize;

use crate::api_keys::LIST;
use crate::api_keys::created::show_made;
use crate::api_keys::expiry::{Expiry, ExpiryFields};
use crate::api_keys::networks::NetworksField;
use crate::mails::KeyChange;
use crate::page::error::PageError;
use crate::page::part::{Keys, Part};
use crate::page::shell::{Shell, render};
use crate::page::visitor::KeyManager;

#[derive(Template)]
#[template(path = "api_keys/new.html")]
struct NewKeyPage<'a> {
    shell: Shell,
    id: String,
    name: &'a str,
    name_error: Option<NameError>,
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
    networks: String,
}

pub(crate) async fn form(KeyManager(visitor): KeyManager) -> Result<HttpResponse, PageError> {
    // The form carries the id of the key to be made, so that sending it twice makes one key.
    let id = KeyId::new(edge::now(), edge::random()).to_string();
    let shell = Shell::new("keys", &visitor);
    let draft = visitor.draft();
    let (name, networks, expiry) =
        draft.map(|draft| (draft.field("name"), draft.field("networks"), Expiry::of_draft(&draft))).unwrap_or_default();
    let (expiry, networks) =
        (expiry.fields(None, &visitor.signed_in, None, edge::now()), NetworksField::new(networks, None));
    let page = NewKeyPage { shell, id, name: &name, name_error: None, expiry, networks };
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
    let (name, expires_at, allowed_networks) =
        match (Name::new(form.name.as_str()), form.expiry.end(audit.at, None, &visitor.signed_in), networks) {
            (Ok(name), Ok(expires_at), Ok(networks)) => (name, expires_at, networks),
            (name, expires_at, networks) => {
                let page = NewKeyPage {
                    shell: Shell::new("keys", &visitor),
                    id: form.id.clone(),
                    name: &form.name,
                    name_error: name.err(),
                    expiry: form.expiry.fields(None, &visitor.signed_in, expires_at.err(), audit.at),
                    networks: NetworksField::new(&form.networks, networks.err()),
                };
                return render(StatusCode::UNPROCESSABLE_ENTITY, &page);
            }
        };
    let organisation_id = visitor.organisation();
    let secret = KeySecret::new(edge::random());
    let request = KeyRequest { organisation_id, name, expires_at, allowed_networks, replaces: None, id, secret };
    let made = create_key(keys.as_ref(), &format, request, &audit).await;
    if let Ok(made) = &made {
        visitor.mail_key((made.name.as_str(), made.key.hint()), KeyChange::Created).await?;
    }
    show_made(&visitor, made, id, LIST, None)
}
