//! Replaces a key without a gap: makes a new key with the old one's name, and sets how long the old key works after the
//! new one has created a patient. The new key lasts as long as the old one, unless the visitor chooses otherwise.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Form;
use askama::Template;
use intake_domain::{
    AllowedNetworks, KeyFormat, KeyId, KeyRecord, KeyRequest, KeySecret, KeyStatus, ManageKeysError, Name, Replacement,
    create_key,
};
use intake_edge as edge;
use serde::Deserialize;
use time::Duration;

use crate::api_keys::OwnKey;
use crate::api_keys::created::{Replaced, show_made};
use crate::api_keys::expiry::{Expiry, ExpiryFields};
use crate::api_keys::facts::KeyFacts;
use crate::api_keys::filter::Filter;
use crate::mails::KeyChange;
use crate::page::error::PageError;
use crate::page::part::{Keys, Part};
use crate::page::shell::{Shell, render};

/// Time enough for most people to deploy the new key.
const USUAL_CHOICE: &str = "24h";

#[derive(Template)]
#[template(path = "api_keys/replace.html")]
struct ReplacePage<'a> {
    shell: Shell,
    action: String,
    back: String,
    new_id: String,
    name: &'a str,
    facts: KeyFacts,
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

/// Time for which a key can work after its replacement has created a patient.
const CHOICES: [(&str, &str, Duration); 4] = [
    ("now", "immediately", Duration::ZERO),
    ("1h", "after 1 hour", Duration::HOUR),
    ("24h", "after 24 hours", Duration::DAY),
    ("7d", "after 7 days", Duration::WEEK),
];

pub(crate) async fn page(own: OwnKey) -> Result<HttpResponse, PageError> {
    let (OwnKey { visitor, key: old, filter }, now) = (&own, edge::now());
    if !old.status(now).is_active() {
        return Ok(not_replaced(old, filter));
    }
    let new_id = KeyId::new(now, edge::random()).to_string();
    let draft = visitor.draft();
    let expiry = draft.as_ref().map(Expiry::of_draft).unwrap_or_default();
    let expiry = expiry.fields(Some(old), visitor.signed_in.key_age_max, None, now);
    let chosen = draft.map_or_else(|| USUAL_CHOICE.to_owned(), |draft| draft.field("ends_after"));
    render(StatusCode::OK, &ReplacePage::new(&own, KeyFacts::new(&own).await?, new_id, &chosen, expiry))
}

pub(crate) async fn submit(
    own: OwnKey,
    form: Form<ReplaceForm>,
    keys: Part<dyn Keys>,
    format: Part<KeyFormat>,
) -> Result<HttpResponse, PageError> {
    let OwnKey { visitor, key: old, filter } = &own;
    visitor.assert_own_form(&form.form_token)?;
    let (audit, age) = (visitor.audit(), visitor.signed_in.key_age_max);
    let choice = CHOICES.iter().find(|(value, ..)| *value == form.ends_after);
    let &(chosen, stops, ends_after) = choice.ok_or(PageError::BadForm)?;
    let ReplaceForm { id: new_id, expiry, .. } = form.into_inner();
    let expires_at = match expiry.end(audit.at, Some(old), age) {
        Ok(expires_at) => expires_at,
        Err(error) => {
            let fields = expiry.fields(Some(old), age, Some(error), audit.at);
            let page = ReplacePage::new(&own, KeyFacts::new(&own).await?, new_id, chosen, fields);
            return render(StatusCode::UNPROCESSABLE_ENTITY, &page);
        }
    };
    let id: KeyId = new_id.parse().map_err(|_| PageError::BadForm)?;
    let request = KeyRequest {
        organisation_id: visitor.organisation(),
        name: Name::stored(old.name.clone()).map_err(|_| PageError::BadForm)?,
        expires_at,
        allowed_networks: AllowedNetworks::default(),
        replaces: Some(Replacement { key: old.id, ends_after }),
        id,
        secret: KeySecret::new(edge::random()),
    };
    let made = create_key(keys.as_ref(), &format, request, &audit).await;
    if matches!(made, Err(ManageKeysError::NothingToReplace)) {
        return Ok(not_replaced(old, filter));
    }
    if let Ok(made) = &made {
        visitor.mail_key((made.name.as_str(), made.key.hint()), KeyChange::Replaced).await?;
    }
    let replaced = Replaced { link: format!("/settings/api-keys/{}", old.id), stops };
    show_made(visitor, made, id, &filter.back(old.id), Some(replaced))
}

fn not_replaced(old: &KeyRecord, filter: &Filter) -> HttpResponse {
    let name = &old.name;
    let notice = match old.status(edge::now()) {
        KeyStatus::Paused(_) => format!("“{name}” is paused. Resume it before you replace it, or create a new key."),
        _ => format!("“{name}” is no longer active, so nothing can replace it. Create a new key instead."),
    };
    filter.back_with_notice(old.id, &notice)
}

impl<'a> ReplacePage<'a> {
    fn new(own: &'a OwnKey, facts: KeyFacts, new_id: String, chosen: &'a str, expiry: ExpiryFields) -> Self {
        let OwnKey { visitor, key: old, filter } = own;
        Self {
            shell: Shell::new("keys", visitor),
            action: format!("/settings/api-keys/{}/replace{}", old.id, filter.query()),
            back: filter.back(old.id),
            new_id,
            name: &old.name,
            facts,
            choices: &CHOICES,
            chosen,
            expiry,
        }
    }
}
