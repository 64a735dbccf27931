//! The company or person to call about a key: the field of the forms, and the page that changes it.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Form;
use askama::Template;
use intake_domain::{KeyContact, KeyNoteError, KeyRecord};
use serde::Deserialize;

use crate::api_keys::OwnKey;
use crate::api_keys::filter::Filter;
use crate::api_keys::rename::{after, kept_as_revoked};
use crate::page::error::PageError;
use crate::page::part::{Keys, Part};
use crate::page::shell::{Shell, render};
use crate::page::visitor::Visitor;

/// The field of a form.
pub(crate) struct ContactField {
    pub(crate) text: String,
    pub(crate) error: Option<KeyNoteError>,
    pub(crate) characters_max: usize,
}

impl ContactField {
    pub(crate) fn new(text: impl Into<String>, error: Option<KeyNoteError>) -> Self {
        Self { text: text.into(), error, characters_max: KeyContact::MAX_CHARACTERS }
    }
}

#[derive(Template)]
#[template(path = "api_keys/contact.html")]
struct ContactPage<'a> {
    shell: Shell,
    action: String,
    back: String,
    name: &'a str,
    contact: ContactField,
}

#[derive(Deserialize)]
pub(crate) struct ContactForm {
    form_token: String,
    contact: String,
}

pub(crate) async fn form(OwnKey { visitor, key, filter }: OwnKey) -> Result<HttpResponse, PageError> {
    if key.revoked_at.is_some() {
        return Ok(kept_as_revoked(&filter, &key));
    }
    let draft = visitor.draft().map(|draft| draft.field("contact"));
    let field = ContactField::new(draft.unwrap_or_else(|| key.contact.clone()), None);
    render(StatusCode::OK, &ContactPage::new(&visitor, &key, &filter, field))
}

pub(crate) async fn write(
    OwnKey { visitor, key, filter }: OwnKey,
    form: Form<ContactForm>,
    keys: Part<dyn Keys>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let contact = match KeyContact::new(&form.contact) {
        Ok(contact) => contact,
        Err(error) => {
            let field = ContactField::new(&form.contact, Some(error));
            return render(StatusCode::UNPROCESSABLE_ENTITY, &ContactPage::new(&visitor, &key, &filter, field));
        }
    };
    let saved = keys.write_contact(visitor.organisation(), key.id, &contact, &visitor.audit()).await;
    after(saved, "Vendor contact saved.", &filter, &key)
}

impl<'a> ContactPage<'a> {
    fn new(visitor: &Visitor, key: &'a KeyRecord, filter: &Filter, contact: ContactField) -> Self {
        Self {
            shell: Shell::new("keys", visitor),
            action: format!("/settings/api-keys/{}/contact{}", key.id, filter.query()),
            back: filter.back(key.id),
            name: &key.name,
            contact,
        }
    }
}
