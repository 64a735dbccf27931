//! Pausing a key, after a page that shows what depends on it, and resuming it.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form};
use askama::Template;
use intake_domain::{KeyPauseStore, KeyRecord, KeyStatus, ManageKeysError, MemberStore, pause_key, resume_key};
use intake_edge as edge;

use crate::api_keys::OwnKey;
use crate::api_keys::facts::KeyFacts;
use crate::api_keys::filter::Filter;
use crate::mails::{KeyChange, Mails};
use crate::page::error::PageError;
use crate::page::form_token::FormToken;
use crate::page::shell::{Shell, render};

#[derive(Template)]
#[template(path = "api_keys/pause.html")]
struct PausePage<'a> {
    shell: Shell,
    name: &'a str,
    action: String,
    back: String,
    facts: KeyFacts,
}

pub(crate) async fn confirm(own: OwnKey) -> Result<HttpResponse, PageError> {
    let OwnKey { visitor, key, filter } = &own;
    match key.status(edge::now()) {
        KeyStatus::Paused(_) => return Ok(filter.back_with_notice(key.id, &paused(&key.name))),
        KeyStatus::Revoked(_) | KeyStatus::Expired(_) => return Ok(is_over(filter, key)),
        KeyStatus::Active | KeyStatus::ActiveUntil(_) | KeyStatus::Suspended(_) => {}
    }
    let page = PausePage {
        shell: Shell::new("keys", visitor),
        name: &key.name,
        action: format!("/settings/api-keys/{}/pause{}", key.id, filter.query()),
        back: filter.back(key.id),
        facts: KeyFacts::new(&own).await?,
    };
    render(StatusCode::OK, &page)
}

pub(crate) async fn pause(
    own: OwnKey,
    form: Form<FormToken>,
    keys: Data<dyn KeyPauseStore>,
    (members, mails): (Data<dyn MemberStore>, Data<Mails>),
) -> Result<HttpResponse, PageError> {
    let OwnKey { visitor, key, filter } = &own;
    visitor.assert_own_form(&form.form_token)?;
    match pause_key(keys.as_ref(), key.id, Some(visitor.organisation()), &visitor.audit()).await {
        Err(ManageKeysError::KeyIsOver(_)) => return Ok(is_over(filter, key)),
        outcome => drop(outcome?),
    }
    if key.paused_at.is_none() {
        mails.key(members.as_ref(), &visitor.signed_in, (&key.name, &key.hint), KeyChange::Paused).await;
    }
    Ok(filter.back_with_notice(key.id, &paused(&key.name)))
}

pub(crate) async fn resume(
    own: OwnKey,
    form: Form<FormToken>,
    keys: Data<dyn KeyPauseStore>,
    (members, mails): (Data<dyn MemberStore>, Data<Mails>),
) -> Result<HttpResponse, PageError> {
    let OwnKey { visitor, key, filter } = &own;
    visitor.assert_own_form(&form.form_token)?;
    match resume_key(keys.as_ref(), key.id, Some(visitor.organisation()), &visitor.audit()).await {
        Err(ManageKeysError::KeyIsOver(_)) => return Ok(is_over(filter, key)),
        outcome => outcome?,
    }
    if key.paused_at.is_some() {
        mails.key(members.as_ref(), &visitor.signed_in, (&key.name, &key.hint), KeyChange::Resumed).await;
    }
    let notice = format!("“{}” has been resumed. Requests using it are accepted again.", key.name);
    Ok(filter.back_with_notice(key.id, &notice))
}

fn paused(name: &str) -> String {
    format!("“{name}” is paused. Requests using it are refused until you resume it.")
}

fn is_over(filter: &Filter, key: &KeyRecord) -> HttpResponse {
    let notice = format!("“{}” was revoked or has expired, so it can't be paused or resumed.", key.name);
    filter.back_with_notice(key.id, &notice)
}
