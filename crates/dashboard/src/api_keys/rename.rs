//! Giving a key another name.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Form;
use askama::Template;
use intake_domain::{KeyRecord, ManageKeysError, Name, NameError};
use serde::Deserialize;

use crate::api_keys::OwnKey;
use crate::api_keys::filter::Filter;
use crate::page::error::PageError;
use crate::page::part::{Keys, Part};
use crate::page::shell::{Shell, render};
use crate::page::visitor::Visitor;

#[derive(Template)]
#[template(path = "api_keys/rename.html")]
struct RenamePage<'a> {
    shell: Shell,
    action: String,
    back: String,
    old_name: &'a str,
    name: &'a str,
    name_error: Option<NameError>,
}

#[derive(Deserialize)]
pub(crate) struct RenameForm {
    form_token: String,
    name: String,
}

pub(crate) async fn page(OwnKey { visitor, key, filter }: OwnKey) -> Result<HttpResponse, PageError> {
    if key.revoked_at.is_some() {
        return Ok(kept_as_revoked(&filter, &key));
    }
    let draft = visitor.draft().map(|draft| draft.field("name"));
    let page = RenamePage::new(&visitor, &key, &filter);
    render(StatusCode::OK, &RenamePage { name: draft.as_deref().unwrap_or(&key.name), ..page })
}

pub(crate) async fn rename(
    OwnKey { visitor, key, filter }: OwnKey,
    form: Form<RenameForm>,
    keys: Part<dyn Keys>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let name = match Name::new(form.name.as_str()) {
        Ok(name) => name,
        Err(error) => {
            let page = RenamePage::new(&visitor, &key, &filter);
            let page = RenamePage { name: &form.name, name_error: Some(error), ..page };
            return render(StatusCode::UNPROCESSABLE_ENTITY, &page);
        }
    };
    let renamed = keys.rename(visitor.organisation(), key.id, &name, &visitor.audit()).await;
    after(renamed, &format!("Renamed to “{name}”."), &filter, &key)
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

impl<'a> RenamePage<'a> {
    fn new(visitor: &Visitor, key: &'a KeyRecord, filter: &Filter) -> Self {
        Self {
            shell: Shell::new("keys", visitor),
            action: format!("/settings/api-keys/{}/rename{}", key.id, filter.query()),
            back: filter.back(key.id),
            old_name: &key.name,
            name: &key.name,
            name_error: None,
        }
    }
}
