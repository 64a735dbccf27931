//! What a page that ends a key shows of it first: how it is used, who made it, and what people wrote down about it.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use intake_domain::{KeyActivity, KeyFormat, KeyRecord, KeyStatus};
use intake_edge as edge;
use time::Duration;

use crate::api_keys::OwnKey;
use crate::api_keys::key_row::KeyRow;
use crate::api_keys::select::Change;
use crate::page::error::PageError;
use crate::page::number::grouped;
use crate::page::shell::{Shell, render};

/// A key used within this time is in use: most integrations send something every working day.
const IN_USE: Duration = Duration::DAY;
/// Days of which requests are counted, with today.
const DAYS: i64 = 7;

/// The facts about one key.
pub(crate) struct KeyFacts {
    pub(crate) key: KeyRow,
    pub(crate) contact: String,
    pub(crate) note: String,
    /// Requests of the last days, accepted or refused.
    pub(crate) requests: String,
    pub(crate) is_in_use: bool,
    /// True if the page ends the use.
    pub(crate) is_ending: bool,
}

/// The page that asks before a key is paused or revoked.
#[derive(Template)]
#[template(path = "api_keys/confirm.html")]
struct ConfirmPage<'a> {
    shell: Shell,
    title: String,
    facts: KeyFacts,
    text: &'a str,
    action: String,
    button: String,
    is_danger: bool,
    back: String,
}

/// Asks whether to change a key, with what follows from it.
pub(crate) async fn ask(own: &OwnKey, change: Change, text: &str) -> Result<HttpResponse, PageError> {
    let OwnKey { visitor, key, filter } = own;
    let page = ConfirmPage {
        shell: Shell::new("keys", visitor),
        title: format!("{} “{}”?", change.verb(), key.name),
        facts: KeyFacts { is_ending: true, ..KeyFacts::new(own).await? },
        text,
        action: format!("/settings/api-keys/{}/{}{}", key.id, change.value(), filter.query()),
        button: format!("{} key", change.verb()),
        is_danger: change == Change::Revoke,
        back: filter.back(key.id),
    };
    render(StatusCode::OK, &page)
}

/// The reason why requests using the key are refused, wherever they come from. None: they are accepted.
pub(crate) fn why_refused(key: &KeyRecord) -> Option<&'static str> {
    match key.status(edge::now()) {
        KeyStatus::Active | KeyStatus::ActiveUntil(_) => None,
        KeyStatus::Suspended(_) => Some("the organisation is suspended"),
        KeyStatus::Paused(_) => Some("the key is paused"),
        KeyStatus::Expired(_) => Some("the key has expired"),
        KeyStatus::Revoked(_) => Some("the key was revoked"),
    }
}

impl KeyFacts {
    pub(crate) async fn new(own: &OwnKey) -> Result<Self, PageError> {
        let OwnKey { visitor, key, .. } = own;
        let (activity, now) = (visitor.shared::<dyn KeyActivity>()?, edge::now());
        let since = visitor.zone().day(now) - Duration::days(DAYS - 1);
        let answers = activity.answers(visitor.organisation(), key.id, since).await?;
        let requests = answers.iter().filter(|answer| answer.field.is_none()).map(|answer| answer.count).sum();
        Ok(Self {
            key: KeyRow::new(key, &answers, visitor.shared::<KeyFormat>()?, &visitor.signed_in, now),
            contact: key.contact.clone(),
            note: key.note.clone(),
            requests: grouped(requests),
            is_ending: false,
            is_in_use: key.last_used_at.is_some_and(|at| now - at < IN_USE),
        })
    }
}
