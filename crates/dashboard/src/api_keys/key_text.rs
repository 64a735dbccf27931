//! The pages that change the name of a key, the note about it, and the company or person to call about it.

use std::error::Error;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Form;
use askama::Template;
use intake_domain::{KeyContact, KeyNote, KeyRecord, KeyText, ManageKeysError, Name};
use serde::Deserialize;

use crate::api_keys::OwnKey;
use crate::api_keys::filter::Filter;
use crate::page::error::PageError;
use crate::page::part::{Keys, Part};
use crate::page::shell::{Shell, render};

/// The text that a page changes.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Name,
    Note,
    Contact,
}

/// The field of a form.
pub(crate) struct TextField {
    pub(crate) text: String,
    pub(crate) error: Option<String>,
    pub(crate) characters_max: usize,
}

#[derive(Template)]
#[template(path = "api_keys/key_text.html")]
struct TextPage {
    shell: Shell,
    action: String,
    back: String,
    name: String,
    kind: Kind,
    field: TextField,
}

#[derive(Deserialize)]
pub(crate) struct TextForm {
    form_token: String,
    name: Option<String>,
    note: Option<String>,
    contact: Option<String>,
}

pub(crate) async fn page(kind: Kind, own: OwnKey) -> Result<HttpResponse, PageError> {
    if own.key.revoked_at.is_some() {
        return Ok(kept_as_revoked(&own.filter, &own.key));
    }
    let draft = own.visitor.draft().map(|draft| draft.field(kind.field()));
    let text = draft.unwrap_or_else(|| kind.of(&own.key).to_owned());
    render(StatusCode::OK, &TextPage::new(kind, &own, TextField::new(kind, text, None)))
}

pub(crate) async fn write(
    kind: Kind,
    own: OwnKey,
    form: Form<TextForm>,
    keys: Part<dyn Keys>,
) -> Result<HttpResponse, PageError> {
    let OwnKey { visitor, key, filter } = &own;
    visitor.assert_own_form(&form.form_token)?;
    let sent = match kind {
        Kind::Name => &form.name,
        Kind::Note => &form.note,
        Kind::Contact => &form.contact,
    };
    let sent = sent.as_deref().ok_or(PageError::BadForm)?;
    let text = match kind.parse(sent) {
        Ok(text) => text,
        Err(error) => {
            let page = TextPage::new(kind, &own, TextField::new(kind, sent, Some(error.to_string())));
            return render(StatusCode::UNPROCESSABLE_ENTITY, &page);
        }
    };
    let notice = match &text {
        KeyText::Name(name) => format!("Renamed to “{name}”."),
        KeyText::Note(_) => "Note saved.".to_owned(),
        KeyText::Contact(_) => "Vendor contact saved.".to_owned(),
    };
    let written = keys.describe(visitor.organisation(), key.id, text, &visitor.audit()).await;
    after(written, &notice, filter, key)
}

/// Leads back to where a change was begun.
pub(crate) fn after(
    changed: Result<bool, ManageKeysError>,
    notice: &str,
    filter: &Filter,
    key: &KeyRecord,
) -> Result<HttpResponse, PageError> {
    match changed {
        Ok(true) => Ok(filter.back_with_notice(key.id, notice)),
        Ok(false) => Ok(filter.back_with_notice(key.id, "Nothing was changed.")),
        Err(ManageKeysError::KeyIsOver(_)) => Ok(kept_as_revoked(filter, key)),
        Err(error) => Err(error.into()),
    }
}

/// Leads back from a form about a key that has been revoked.
pub(crate) fn kept_as_revoked(filter: &Filter, key: &KeyRecord) -> HttpResponse {
    let notice = format!("“{}” has been revoked, so it can't be changed.", key.name);
    filter.back_with_notice(key.id, &notice)
}

impl Kind {
    /// The name of the field in the form.
    fn field(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Note => "note",
            Self::Contact => "contact",
        }
    }

    /// The last part of the page's address.
    fn address(self) -> &'static str {
        match self {
            Self::Name => "rename",
            Self::Note | Self::Contact => self.field(),
        }
    }

    /// The beginning of the page's heading, before the name of the key.
    fn heading(self) -> &'static str {
        match self {
            Self::Name => "Rename",
            Self::Note => "Note about",
            Self::Contact => "Vendor contact of",
        }
    }

    fn characters_max(self) -> usize {
        match self {
            Self::Name => Name::MAX_CHARACTERS,
            Self::Note => KeyNote::MAX_CHARACTERS,
            Self::Contact => KeyContact::MAX_CHARACTERS,
        }
    }

    fn of(self, key: &KeyRecord) -> &str {
        match self {
            Self::Name => &key.name,
            Self::Note => &key.note,
            Self::Contact => &key.contact,
        }
    }

    fn parse(self, text: &str) -> Result<KeyText, Box<dyn Error>> {
        Ok(match self {
            Self::Name => KeyText::Name(Name::new(text)?),
            Self::Note => KeyText::Note(KeyNote::new(text)?),
            Self::Contact => KeyText::Contact(KeyContact::new(text)?),
        })
    }
}

impl TextField {
    pub(crate) fn new(kind: Kind, text: impl Into<String>, error: Option<String>) -> Self {
        Self { text: text.into(), error, characters_max: kind.characters_max() }
    }
}

impl TextPage {
    fn new(kind: Kind, OwnKey { visitor, key, filter }: &OwnKey, field: TextField) -> Self {
        Self {
            shell: Shell::new("keys", visitor),
            action: format!("/settings/api-keys/{}/{}{}", key.id, kind.address(), filter.query()),
            back: filter.back(key.id),
            name: key.name.clone(),
            kind,
            field,
        }
    }
}
