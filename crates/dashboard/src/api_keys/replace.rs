//! Replacing a key without a gap: a new key with the same name, and how long the old one still works once the new one is
//! used. The new key lasts as long as the old one did, unless the visitor chooses otherwise.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path, Query};
use askama::Template;
use intake_domain::{
    KeyFormat, KeyId, KeyRecord, KeyRequest, KeySecret, KeyStore, ManageKeysError, Name, Replacement, create_key,
};
use intake_http::edge;
use serde::Deserialize;
use time::Duration;

use crate::BaseUrl;
use crate::api_keys::created::show_made;
use crate::api_keys::expiry::{Expiry, ExpiryFields};
use crate::api_keys::filter::{Done, Filter};
use crate::api_keys::own_key;
use crate::page::error::PageError;
use crate::page::shell::{Shell, redirect, render};
use crate::page::visitor::Visitor;

/// Long enough for most people to put the new key everywhere.
const USUAL_CHOICE: &str = "24h";

#[derive(Template)]
#[template(path = "api_keys/replace.html")]
struct ReplacePage<'a> {
    shell: Shell,
    action: String,
    back: String,
    new_id: String,
    name: &'a str,
    choices: &'static [(&'static str, &'static str, Duration)],
    chosen: &'a str,
    expiry: ExpiryFields,
}

#[derive(Deserialize)]
pub(crate) struct ReplaceForm {
    form_token: String,
    id: String,
    ends_after: String,
    #[serde(flatten)]
    expiry: Expiry,
}

/// How long a key can still work after its replacement is first used.
const CHOICES: [(&str, &str, Duration); 4] = [
    ("now", "immediately", Duration::ZERO),
    ("1h", "after 1 hour", Duration::HOUR),
    ("24h", "after 24 hours", Duration::DAY),
    ("7d", "after 7 days", Duration::WEEK),
];

pub(crate) async fn page(
    visitor: Visitor,
    id: Path<String>,
    filter: Option<Query<Filter>>,
    keys: Data<dyn KeyStore>,
) -> Result<HttpResponse, PageError> {
    let (old, now) = (own_key(&visitor, &id, keys.as_ref()).await?, edge::now());
    let filter = filter.map(Query::into_inner).unwrap_or_default();
    if !old.status(now).is_active() {
        return Ok(redirect(&filter.back_after(Done::NotReplaced, old.id)));
    }
    let new_id = KeyId::new(now, edge::random()).to_string();
    let expiry = Expiry::default().fields(Some(&old), None);
    render(StatusCode::OK, &ReplacePage::new(&visitor, &old, &filter, new_id, USUAL_CHOICE, expiry))
}

pub(crate) async fn submit(
    visitor: Visitor,
    id: Path<String>,
    filter: Option<Query<Filter>>,
    form: Form<ReplaceForm>,
    keys: Data<dyn KeyStore>,
    format: Data<KeyFormat>,
    base: Data<BaseUrl>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let (old, deed) = (own_key(&visitor, &id, keys.as_ref()).await?, visitor.deed());
    let filter = filter.map(Query::into_inner).unwrap_or_default();
    let choice = CHOICES.iter().find(|(value, ..)| *value == form.ends_after);
    let &(chosen, _, ends_after) = choice.ok_or(PageError::BadForm)?;
    let ReplaceForm { id: new_id, expiry, .. } = form.into_inner();
    let expires_at = match expiry.end(deed.at, Some(&old)) {
        Ok(expires_at) => expires_at,
        Err(error) => {
            let fields = expiry.fields(Some(&old), Some(error));
            let page = ReplacePage::new(&visitor, &old, &filter, new_id, chosen, fields);
            return render(StatusCode::UNPROCESSABLE_ENTITY, &page);
        }
    };
    let id: KeyId = new_id.parse().map_err(|_| PageError::BadForm)?;
    let request = KeyRequest {
        organisation_id: visitor.organisation(),
        name: Name::new(old.name).map_err(|_| PageError::BadForm)?,
        expires_at,
        replaces: Some(Replacement { key: old.id, ends_after }),
        id,
        secret: KeySecret::new(edge::random()),
    };
    let made = create_key(keys.as_ref(), &format, request, &deed).await;
    if matches!(made, Err(ManageKeysError::NothingToReplace)) {
        return Ok(redirect(&filter.back_after(Done::NotReplaced, old.id)));
    }
    show_made(&visitor, made, id, &filter.back(old.id), &base, &format)
}

impl<'a> ReplacePage<'a> {
    fn new(
        visitor: &Visitor,
        old: &'a KeyRecord,
        filter: &Filter,
        new_id: String,
        chosen: &'a str,
        expiry: ExpiryFields,
    ) -> Self {
        Self {
            shell: Shell::new("keys", visitor),
            action: format!("/settings/api-keys/{}/replace{}", old.id, filter.query()),
            back: filter.back(old.id),
            new_id,
            name: &old.name,
            choices: &CHOICES,
            chosen,
            expiry,
        }
    }
}
