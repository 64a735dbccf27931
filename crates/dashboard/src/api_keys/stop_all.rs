//! Stopping all keys of the organisation together, after a page that lists them, and resuming keys that were stopped or
//! paused together.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Form;
use askama::Template;
use intake_domain::{AuditEntryId, KeyRecord, KeyStop, Zone, list_keys};
use intake_edge as edge;
use serde::Deserialize;

use crate::api_keys::LIST;
use crate::mails::MailedKey;
use crate::page::error::PageError;
use crate::page::form_token::OwnForm;
use crate::page::moment::{Moment, exact, relative};
use crate::page::notice::redirect_with_notice;
use crate::page::number::counted;
use crate::page::part::{Keys, Part};
use crate::page::shell::{Shell, render};
use crate::page::visitor::{Administrator, KeyManager, Visitor};
use crate::stopped_keys::KeysChange;

#[derive(Template)]
#[template(path = "api_keys/stop_all.html")]
struct StopAllPage {
    shell: Shell,
    /// "12 keys".
    count: String,
    keys: Vec<StoppableKey>,
}

/// A key that would stop.
struct StoppableKey {
    name: String,
    hint: String,
    last_used_at: Option<Moment>,
}

/// Keys that were stopped together, as the list of keys shows them.
pub(crate) struct StopNotice {
    pub(crate) id: AuditEntryId,
    pub(crate) count: String,
    pub(crate) is_one: bool,
    pub(crate) at: Moment,
    pub(crate) by: String,
    /// "stopped", or "paused" if the keys were selected.
    pub(crate) done: &'static str,
    /// True if the visitor may resume them.
    pub(crate) can_resume: bool,
}

#[derive(Deserialize)]
pub(crate) struct ResumeForm {
    form_token: String,
    #[serde(default)]
    stop: String,
}

pub(crate) async fn confirm(
    Administrator(visitor): Administrator,
    keys: Part<dyn Keys>,
) -> Result<HttpResponse, PageError> {
    let now = edge::now();
    let mut all = list_keys(keys.as_ref(), visitor.organisation()).await?;
    all.retain(|key| key.paused_at.is_none() && !key.is_over(now));
    // Those that will be missed first.
    all.sort_by_key(|key| std::cmp::Reverse(key.last_used_at));
    let page = StopAllPage {
        shell: Shell::new("keys", &visitor),
        count: counted(all.len(), "key"),
        keys: all.into_iter().map(|key| StoppableKey::new(key, visitor.zone())).collect(),
    };
    render(StatusCode::OK, &page)
}

pub(crate) async fn stop(
    OwnForm(Administrator(visitor)): OwnForm<Administrator>,
    keys: Part<dyn Keys>,
) -> Result<HttpResponse, PageError> {
    let stopped = keys.stop_all(visitor.organisation(), &visitor.audit()).await?;
    let mailed: Vec<_> = stopped.iter().map(MailedKey::from).collect();
    visitor.mail_keys(&mailed, KeysChange::Stopped).await?;
    let notice = match stopped.len() {
        0 => "No key was active, so nothing was stopped.".to_owned(),
        1 => "1 key was stopped. Requests using it are refused until you resume it.".to_owned(),
        count => format!("{count} keys were stopped. Requests using them are refused until you resume them."),
    };
    Ok(redirect_with_notice(LIST, &notice))
}

pub(crate) async fn resume(
    Administrator(visitor): Administrator,
    form: Form<ResumeForm>,
    keys: Part<dyn Keys>,
) -> Result<HttpResponse, PageError> {
    resume_together(&visitor, &form, keys.as_ref()).await
}

/// Resumes keys that were selected and paused, which every key manager may do.
pub(crate) async fn resume_paused(
    KeyManager(visitor): KeyManager,
    form: Form<ResumeForm>,
    keys: Part<dyn Keys>,
) -> Result<HttpResponse, PageError> {
    resume_together(&visitor, &form, keys.as_ref()).await
}

async fn resume_together(visitor: &Visitor, form: &ResumeForm, keys: &dyn Keys) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let stop: AuditEntryId = form.stop.parse().map_err(|_| PageError::BadForm)?;
    let resumed = keys.resume_stopped(visitor.organisation(), stop, &visitor.audit()).await?;
    let mailed: Vec<_> = resumed.iter().map(MailedKey::from).collect();
    visitor.mail_keys(&mailed, KeysChange::Resumed).await?;
    let notice = match resumed.len() {
        0 => "No key was left to resume.".to_owned(),
        count => format!("{} resumed.", if count == 1 { "1 key was".to_owned() } else { format!("{count} keys were") }),
    };
    Ok(redirect_with_notice(LIST, &notice))
}

impl StoppableKey {
    fn new(key: KeyRecord, zone: Zone) -> Self {
        Self { name: key.name, hint: key.hint, last_used_at: key.last_used_at.map(|at| relative(at, zone)) }
    }
}

impl StopNotice {
    pub(crate) fn new(KeyStop { id, is_of_all, at, by, keys }: KeyStop, visitor: &Visitor) -> Self {
        let (role, zone) = (visitor.signed_in.member.role, visitor.zone());
        Self {
            id,
            count: counted(keys, "key"),
            is_one: keys == 1,
            at: exact(at, zone),
            by: by.unwrap_or_else(|| "the service operator".to_owned()),
            done: if is_of_all { "stopped" } else { "paused" },
            can_resume: if is_of_all { role.administers() } else { role.manages_keys() },
        }
    }
}
