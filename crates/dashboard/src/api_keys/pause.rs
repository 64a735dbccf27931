//! Pausing a key, after a page that shows what depends on it, and resuming it.

use actix_web::HttpResponse;
use intake_domain::{KeyRecord, KeyStatus, ManageKeysError, PauseOutcome, ResumeOutcome};
use intake_edge as edge;

use crate::api_keys::OwnKey;
use crate::api_keys::facts::{ask, why_refused};
use crate::api_keys::select::Change;
use crate::mails::KeyChange;
use crate::page::error::PageError;
use crate::page::form_token::OwnForm;
use crate::page::part::{Keys, Part};

const CONSEQUENCE: &str = "Requests using this key will be refused immediately, until you resume the key. Patients sent \
    meanwhile are lost unless the vendor sends them again. If the key expires while it is paused, it can't be resumed.";
const PAUSED: &str = "is paused. Requests using it are refused until you resume it.";
const PAUSED_TOO: &str = "is paused. Requests using it are refused until you resume it and while the organisation is \
    suspended.";
const OVER: &str = "was revoked or has expired, so it can't be paused or resumed.";

pub(crate) async fn confirm(own: OwnKey) -> Result<HttpResponse, PageError> {
    match own.key.status(edge::now()) {
        KeyStatus::Paused(_) => Ok(back(&own, PAUSED)),
        KeyStatus::Suspended(_) if own.key.paused_at.is_some() => Ok(back(&own, PAUSED_TOO)),
        KeyStatus::Revoked(_) | KeyStatus::Expired(_) => Ok(back(&own, OVER)),
        KeyStatus::Active | KeyStatus::ActiveUntil(_) | KeyStatus::Suspended(_) => {
            ask(&own, Change::Pause, CONSEQUENCE).await
        }
    }
}

pub(crate) async fn pause(OwnForm(own): OwnForm<OwnKey>, keys: Part<dyn Keys>) -> Result<HttpResponse, PageError> {
    let OwnKey { visitor, key, .. } = &own;
    let notice = if key.suspended_at.is_some() { PAUSED_TOO } else { PAUSED };
    match keys.pause(key.id, Some(visitor.organisation()), &visitor.audit()).await {
        Ok(PauseOutcome::Paused { .. }) => changed(&own, KeyChange::Paused, notice).await,
        Ok(PauseOutcome::AlreadyPaused { .. }) => Ok(back(&own, notice)),
        Err(error) => failed(&own, error),
    }
}

pub(crate) async fn resume(OwnForm(own): OwnForm<OwnKey>, keys: Part<dyn Keys>) -> Result<HttpResponse, PageError> {
    let OwnKey { visitor, key, .. } = &own;
    // Of what refuses its requests, only the pause has ended.
    let use_of_it = match why_refused(&KeyRecord { paused_at: None, ..key.clone() }) {
        Some(why) => format!("Requests using it are still refused, because {why}."),
        None => "Requests using it are accepted again.".to_owned(),
    };
    let notice = format!("has been resumed. {use_of_it}");
    match keys.resume(key.id, Some(visitor.organisation()), &visitor.audit()).await {
        Ok(ResumeOutcome::Resumed) => changed(&own, KeyChange::Resumed(&use_of_it), &notice).await,
        Ok(ResumeOutcome::NotPaused) => Ok(back(&own, &notice)),
        Err(error) => failed(&own, error),
    }
}

async fn changed(own: &OwnKey, change: KeyChange<'_>, notice: &str) -> Result<HttpResponse, PageError> {
    own.visitor.mail_key((&own.key).into(), change).await?;
    Ok(back(own, notice))
}

fn failed(own: &OwnKey, error: ManageKeysError) -> Result<HttpResponse, PageError> {
    match error {
        ManageKeysError::KeyIsOver(_) => Ok(back(own, OVER)),
        error => Err(error.into()),
    }
}

fn back(OwnKey { key, filter, .. }: &OwnKey, notice: &str) -> HttpResponse {
    filter.back_with_notice(key.id, &format!("“{}” {notice}", key.name))
}
