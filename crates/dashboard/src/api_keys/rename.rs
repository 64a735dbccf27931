//! Giving a key another name.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path, Query};
use askama::Template;
use intake_domain::{ChangeKeyOutcome, KeyRecord, KeyStore, Name, NameError};
use serde::Deserialize;

use crate::api_keys::filter::{Done, Filter};
use crate::api_keys::own_key;
use crate::page::error::PageError;
use crate::page::shell::{Shell, redirect, render};
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

pub(crate) async fn page(
    visitor: Visitor,
    id: Path<String>,
    filter: Option<Query<Filter>>,
    keys: Data<dyn KeyStore>,
) -> Result<HttpResponse, PageError> {
    let key = own_key(&visitor, &id, keys.as_ref()).await?;
    let filter = filter.map(Query::into_inner).unwrap_or_default();
    if key.revoked_at.is_some() {
        return Ok(redirect(&filter.back_after(Done::KeptAsRevoked, key.id)));
    }
    render(StatusCode::OK, &RenamePage::new(&visitor, &key, &filter))
}

pub(crate) async fn rename(
    visitor: Visitor,
    id: Path<String>,
    filter: Option<Query<Filter>>,
    form: Form<RenameForm>,
    keys: Data<dyn KeyStore>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let key = own_key(&visitor, &id, keys.as_ref()).await?;
    let filter = filter.map(Query::into_inner).unwrap_or_default();
    let name = match Name::new(form.name.as_str()) {
        Ok(name) => name,
        Err(error) => {
            let page = RenamePage::new(&visitor, &key, &filter);
            let page = RenamePage { name: &form.name, name_error: Some(error), ..page };
            return render(StatusCode::UNPROCESSABLE_ENTITY, &page);
        }
    };
    let outcome = keys.rename(visitor.organisation(), key.id, &name, &visitor.deed()).await?;
    after(outcome, Done::Renamed, &filter, &key)
}

/// Leads back to where a change was begun.
pub(crate) fn after(
    outcome: ChangeKeyOutcome,
    done: Done,
    filter: &Filter,
    key: &KeyRecord,
) -> Result<HttpResponse, PageError> {
    match outcome {
        ChangeKeyOutcome::Changed => Ok(redirect(&filter.back_after(done, key.id))),
        ChangeKeyOutcome::Unchanged => Ok(redirect(&filter.back(key.id))),
        ChangeKeyOutcome::Revoked => Ok(redirect(&filter.back_after(Done::KeptAsRevoked, key.id))),
        ChangeKeyOutcome::NotFound => Err(PageError::NotFound),
    }
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
