//! Pausing or revoking several keys together: a page on which they are marked, one that asks, and the change itself.
//! Keys that were paused together can be resumed together.

use std::collections::HashMap;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Form, Query};
use askama::Template;
use intake_domain::{
    AnswerCount, INSTALLED_WITHIN, KEYS_PER_PAGE, KeyActivity, KeyFormat, KeyId, KeyRecord, RevokeOutcome, SignedIn,
    list_keys,
};
use intake_edge as edge;
use serde::Deserialize;
use time::{Duration, OffsetDateTime};

use crate::api_keys::filter::Filter;
use crate::api_keys::key_row::KeyRow;
use crate::api_keys::status::{answers_of, of_key};
use crate::mails::MailedKey;
use crate::page::error::PageError;
use crate::page::notice::redirect_with_notice;
use crate::page::number::counted;
use crate::page::part::{Keys, Part};
use crate::page::shell::{Shell, render};
use crate::page::visitor::{KeyManager, Visitor};
use crate::stopped_keys::KeysChange;

/// A key used within this time may be needed: some integrations send once a month.
const USED_LATELY: Duration = Duration::days(31);

#[derive(Template)]
#[template(path = "api_keys/select.html")]
struct SelectPage {
    shell: Shell,
    /// The list with the search that led here.
    list: String,
    fields: Vec<(&'static str, String)>,
    keys: Vec<KeyRow>,
    /// Days for which a key that was never used is left out.
    days: i64,
    are_marked: bool,
    /// The address of this page with all keys marked, or none.
    other: String,
    previous: Option<String>,
    next: Option<String>,
}

impl SelectPage {
    /// "23 marked keys". A script counts those that people mark.
    fn marked(&self) -> String {
        if self.are_marked { counted(self.keys.len(), "marked key") } else { "marked keys".to_owned() }
    }
}

#[derive(Template)]
#[template(path = "api_keys/selected.html")]
struct SelectedPage {
    shell: Shell,
    /// "Revoke 9 keys".
    title: String,
    text: &'static str,
    /// "2 keys were": those that may be needed.
    used_lately: Option<String>,
    keys: Vec<KeyRow>,
    value: &'static str,
    action: String,
    back: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Marks {
    /// `all`: every key of the page is marked.
    marked: String,
}

/// Change of the marked keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Pause,
    Revoke,
}

/// The fields of the form that was sent, of which `key` comes once for each marked key.
type Fields = Vec<(String, String)>;

pub(crate) async fn marking(
    KeyManager(visitor): KeyManager,
    filter: Option<Query<Filter>>,
    marks: Option<Query<Marks>>,
    keys: Part<dyn Keys>,
    activity: Part<dyn KeyActivity>,
    format: Part<KeyFormat>,
) -> Result<HttpResponse, PageError> {
    let now = edge::now();
    let filter = filter.map(Query::into_inner).unwrap_or_default();
    let are_marked = marks.is_some_and(|marks| marks.marked == "all");
    let found = keys.search(visitor.organisation(), &filter.search_at(now), now).await?;
    let selection = filter.selection(&found);
    let page_of_list = |link: String| link.replacen("/settings/api-keys", "/settings/api-keys/select", 1);
    let query = filter.query();
    let other = match (are_marked, query.is_empty()) {
        (true, _) => query,
        (false, true) => "?marked=all".to_owned(),
        (false, false) => format!("{query}&marked=all"),
    };
    let answers = answers_of(&found.keys, &visitor.signed_in, activity.as_ref(), now).await?;
    let selectable = found.keys.iter().filter(|key| !key.is_over(now) && !key.is_awaited(now));
    let page = SelectPage {
        shell: Shell::new("keys", &visitor),
        list: filter.list(),
        fields: filter.fields(),
        keys: rows(selectable, &answers, &format, &visitor.signed_in, now),
        days: INSTALLED_WITHIN.whole_days(),
        are_marked,
        other: format!("/settings/api-keys/select{other}"),
        previous: selection.previous.map(page_of_list),
        next: selection.next.map(page_of_list),
    };
    render(StatusCode::OK, &page)
}

pub(crate) async fn confirm(
    KeyManager(visitor): KeyManager,
    filter: Option<Query<Filter>>,
    fields: Query<Fields>,
    keys: Part<dyn Keys>,
    activity: Part<dyn KeyActivity>,
    format: Part<KeyFormat>,
) -> Result<HttpResponse, PageError> {
    let now = edge::now();
    let filter = filter.map(Query::into_inner).unwrap_or_default();
    let selecting = format!("/settings/api-keys/select{}", filter.query());
    let nothing_marked = || Ok(redirect_with_notice(&selecting, "Mark at least one key."));
    if values(&fields, "key").next().is_none() {
        return nothing_marked();
    }
    let change = Change::asked_for(&fields)?;
    let mut marked = marked(&visitor, &fields, change, keys.as_ref(), now).await?;
    if marked.is_empty() {
        return nothing_marked();
    }
    let answers = answers_of(&marked, &visitor.signed_in, activity.as_ref(), now).await?;
    // Those that will be missed first.
    marked.sort_by_key(|key| std::cmp::Reverse(key.last_used_at));
    let is_used_lately = |key: &&KeyRecord| key.last_used_at.is_some_and(|at| now - at < USED_LATELY);
    let used_lately = Some(marked.iter().filter(is_used_lately).count()).filter(|count| *count > 0);
    let page = SelectedPage {
        shell: Shell::new("keys", &visitor),
        title: format!("{} {}", change.verb(), counted(marked.len(), "key")),
        text: change.consequence(),
        used_lately: used_lately.map(|count| format!("{} {}", counted(count, "key"), were(count))),
        keys: rows(marked.iter(), &answers, &format, &visitor.signed_in, now),
        value: change.value(),
        action: format!("/settings/api-keys/selected{}", filter.query()),
        back: selecting,
    };
    render(StatusCode::OK, &page)
}

pub(crate) async fn change(
    KeyManager(visitor): KeyManager,
    filter: Option<Query<Filter>>,
    fields: Form<Fields>,
    keys: Part<dyn Keys>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(values(&fields, "form_token").next().ok_or(PageError::BadForm)?)?;
    let filter = filter.map(Query::into_inner).unwrap_or_default();
    let change = Change::asked_for(&fields)?;
    let marked = marked(&visitor, &fields, change, keys.as_ref(), edge::now()).await?;
    let (changed, failure) = match change {
        Change::Pause => {
            let ids: Vec<_> = marked.iter().map(|key| key.id).collect();
            let paused = keys.pause_together(visitor.organisation(), &ids, &visitor.audit()).await?;
            let is_paused = |key: &&KeyRecord| paused.iter().any(|paused| paused.id == key.id);
            (marked.iter().filter(is_paused).map(MailedKey::from).collect(), None)
        }
        Change::Revoke => revoke(&visitor, &marked, keys.as_ref()).await,
    };
    visitor.mail_keys(&changed, change.mailed()).await?;
    match failure {
        Some(error) => Err(error),
        None => Ok(redirect_with_notice(&filter.list(), &change.notice(changed.len()))),
    }
}

/// Revokes each key as if it were the only one. Returns those that were not revoked before, and what went wrong.
async fn revoke<'a>(
    visitor: &Visitor,
    marked: &'a [KeyRecord],
    keys: &dyn Keys,
) -> (Vec<MailedKey<'a>>, Option<PageError>) {
    let mut revoked = Vec::new();
    for key in marked {
        match keys.revoke(key.id, Some(visitor.organisation()), &visitor.audit()).await {
            Ok(RevokeOutcome::Revoked { .. }) => revoked.push(MailedKey::from(key)),
            Ok(RevokeOutcome::AlreadyRevoked { .. }) => {}
            Err(error) => return (revoked, Some(error.into())),
        }
    }
    (revoked, None)
}

/// The marked keys that the visitor's organisation has and that can be changed so.
async fn marked(
    visitor: &Visitor,
    fields: &Fields,
    change: Change,
    keys: &dyn Keys,
    now: OffsetDateTime,
) -> Result<Vec<KeyRecord>, PageError> {
    let ids = values(fields, "key").map(str::parse).collect::<Result<Vec<KeyId>, _>>();
    let ids = ids.map_err(|_| PageError::BadForm)?;
    if u32::try_from(ids.len()).map_or(true, |count| count > KEYS_PER_PAGE) {
        return Err(PageError::BadForm);
    }
    let mut found = list_keys(keys, visitor.organisation()).await?;
    let is_open = |key: &KeyRecord| !key.is_over(now) && (change == Change::Revoke || key.paused_at.is_none());
    found.retain(|key| ids.contains(&key.id) && is_open(key));
    Ok(found)
}

fn rows<'a>(
    keys: impl Iterator<Item = &'a KeyRecord>,
    answers: &HashMap<KeyId, Vec<AnswerCount>>,
    format: &KeyFormat,
    visitor: &SignedIn,
    now: OffsetDateTime,
) -> Vec<KeyRow> {
    keys.map(|key| KeyRow::new(key, of_key(answers, key.id), format, visitor, now)).collect()
}

fn values<'a>(fields: &'a Fields, name: &'a str) -> impl Iterator<Item = &'a str> {
    fields.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn were(count: usize) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

impl Change {
    fn asked_for(fields: &Fields) -> Result<Self, PageError> {
        match values(fields, "do").next() {
            Some("pause") => Ok(Self::Pause),
            Some("revoke") => Ok(Self::Revoke),
            _ => Err(PageError::BadForm),
        }
    }

    pub(crate) fn value(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Revoke => "revoke",
        }
    }

    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Pause => "Pause",
            Self::Revoke => "Revoke",
        }
    }

    fn consequence(self) -> &'static str {
        match self {
            Self::Pause => {
                "Requests using these keys will be refused immediately, until you resume them. A key that expires while \
                 it is paused can't be resumed."
            }
            Self::Revoke => "Requests using these keys will be refused immediately. This can't be undone.",
        }
    }

    fn mailed(self) -> KeysChange {
        match self {
            Self::Pause => KeysChange::Paused,
            Self::Revoke => KeysChange::Revoked,
        }
    }

    fn notice(self, count: usize) -> String {
        let (were, them) = (were(count), if count == 1 { "it" } else { "them" });
        match (self, count) {
            (_, 0) => "Nothing was changed.".to_owned(),
            (Self::Pause, _) => {
                format!(
                    "{} {were} paused. Requests using {them} are refused until you resume {them}.",
                    counted(count, "key")
                )
            }
            (Self::Revoke, _) => {
                format!("{} {were} revoked. Requests using {them} are now refused.", counted(count, "key"))
            }
        }
    }
}
