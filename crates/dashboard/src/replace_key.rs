//! Replacing a key without a gap: a new one of the same name, and a time that the old one stays good for once the new one is
//! used.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path};
use askama::Template;
use intake_domain::{KeyFormat, KeyId, KeyRequest, KeySecret, KeyStore, Name, Replacement, create_key};
use intake_http::edge;
use serde::Deserialize;
use time::Duration;

use crate::BaseUrl;
use crate::api_keys::{own_key, show_made};
use crate::page_error::PageError;
use crate::shell::{Shell, show};
use crate::visitor::Visitor;

#[derive(Template)]
#[template(path = "replace.html")]
struct ReplacePage {
    shell: Shell,
    id: String,
    new_id: String,
    name: String,
    choices: &'static [(&'static str, &'static str, Duration)],
}

#[derive(Deserialize)]
pub(crate) struct ReplaceForm {
    form_token: String,
    id: String,
    ends_after: String,
}

/// How long a key may be good after its replacement was first used.
const CHOICES: [(&str, &str, Duration); 4] = [
    ("now", "at once", Duration::ZERO),
    ("1h", "after 1 hour", Duration::HOUR),
    ("24h", "after 24 hours", Duration::DAY),
    ("7d", "after 7 days", Duration::WEEK),
];

pub(crate) async fn page(
    visitor: Visitor,
    id: Path<String>,
    keys: Data<dyn KeyStore>,
) -> Result<HttpResponse, PageError> {
    let key = own_key(&visitor, &id, keys.as_ref()).await?;
    let new_id = KeyId::new(edge::now(), edge::random()).to_string();
    let shell = Shell::new("keys", &visitor);
    let page = ReplacePage { shell, id: key.id.to_string(), new_id, name: key.name, choices: &CHOICES };
    show(StatusCode::OK, &page)
}

pub(crate) async fn submit(
    visitor: Visitor,
    id: Path<String>,
    form: Form<ReplaceForm>,
    keys: Data<dyn KeyStore>,
    format: Data<KeyFormat>,
    base: Data<BaseUrl>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let old = own_key(&visitor, &id, keys.as_ref()).await?;
    let choice = CHOICES.iter().find(|(value, ..)| *value == form.ends_after);
    let &(_, _, ends_after) = choice.ok_or(PageError::BadForm)?;
    let wish = KeyRequest {
        organisation_id: visitor.organisation(),
        name: Name::new(old.name).map_err(|_| PageError::BadForm)?,
        expires_at: None,
        replaces: Some(Replacement { key: old.id, ends_after }),
        id: form.id.parse().map_err(|_| PageError::BadForm)?,
        secret: KeySecret::new(edge::random()),
    };
    let made = create_key(keys.as_ref(), &format, wish, &visitor.deed()).await;
    show_made(&visitor, made, &base)
}
