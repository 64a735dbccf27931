//! Writing down what people know about a key.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Form;
use askama::Template;
use intake_domain::{KeyNote, KeyNoteError, KeyRecord};
use serde::Deserialize;

use crate::api_keys::OwnKey;
use crate::api_keys::filter::Filter;
use crate::api_keys::rename::{after, kept_as_revoked};
use crate::page::error::PageError;
use crate::page::part::{Keys, Part};
use crate::page::shell::{Shell, render};
use crate::page::visitor::Visitor;

#[derive(Template)]
#[template(path = "api_keys/note.html")]
struct NotePage<'a> {
    shell: Shell,
    action: String,
    back: String,
    name: &'a str,
    note: &'a str,
    note_error: Option<KeyNoteError>,
    characters_max: usize,
}

#[derive(Deserialize)]
pub(crate) struct NoteForm {
    form_token: String,
    note: String,
}

pub(crate) async fn page(OwnKey { visitor, key, filter }: OwnKey) -> Result<HttpResponse, PageError> {
    if key.revoked_at.is_some() {
        return Ok(kept_as_revoked(&filter, &key));
    }
    let draft = visitor.draft().map(|draft| draft.field("note"));
    let page = NotePage::new(&visitor, &key, &filter);
    render(StatusCode::OK, &NotePage { note: draft.as_deref().unwrap_or(&key.note), ..page })
}

pub(crate) async fn write(
    OwnKey { visitor, key, filter }: OwnKey,
    form: Form<NoteForm>,
    keys: Part<dyn Keys>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let note = match KeyNote::new(&form.note) {
        Ok(note) => note,
        Err(error) => {
            let page = NotePage { note: &form.note, note_error: Some(error), ..NotePage::new(&visitor, &key, &filter) };
            return render(StatusCode::UNPROCESSABLE_ENTITY, &page);
        }
    };
    let saved = keys.write_note(visitor.organisation(), key.id, &note, &visitor.audit()).await;
    after(saved, "Note saved.", &filter, &key)
}

impl<'a> NotePage<'a> {
    fn new(visitor: &Visitor, key: &'a KeyRecord, filter: &Filter) -> Self {
        Self {
            shell: Shell::new("keys", visitor),
            action: format!("/settings/api-keys/{}/note{}", key.id, filter.query()),
            back: filter.back(key.id),
            name: &key.name,
            note: &key.note,
            note_error: None,
            characters_max: KeyNote::MAX_CHARACTERS,
        }
    }
}
