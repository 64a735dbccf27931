//! The page of a key: what is known about it, and how it was used in the last 30 days: a bar for each day with accepted
//! and refused requests, why requests were refused, and the last refusals with their request ids.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use intake_domain::{
    AnswerCount, COUNTED_MIN, Definition, Field, KeyActivity, KeyFormat, KeyId, KeyQuality, KeySuccessor, Refusal,
    RefusalReason, first_kept_day,
};
use intake_edge as edge;

use crate::api_keys::answers::{CREATED, is_accepted};
use crate::api_keys::chart::Chart;
use crate::api_keys::key_row::KeyRow;
use crate::api_keys::refusals::{Cause, Phrase, RefusalRow, is_own_setting, phrase, phrase_of_status};
use crate::api_keys::{OwnKey, SeenKey};
use crate::page::base_url::BaseUrl;
use crate::page::error::PageError;
use crate::page::number::grouped;
use crate::page::part::Part;
use crate::page::patient_field::field_in_words;
use crate::page::shell::{Shell, render};

/// Number of reasons that are shown: the others are rare.
const REASONS: usize = 8;
/// Number of refused requests in the message for the vendor: enough to find the fault.
const IN_MESSAGE: usize = 5;

#[derive(Template)]
#[template(path = "api_keys/usage.html")]
struct UsagePage<'a> {
    shell: Shell,
    /// The list with the search that led here.
    list: String,
    /// The end of the addresses that lead back to the page.
    query: String,
    key: KeyRow,
    accepted: String,
    refused: String,
    chart: Chart,
    reasons: Vec<Reason>,
    /// The rules of the fields that were refused.
    rules: Vec<String>,
    /// Note of the members about the key, and whom to call.
    note: &'a str,
    contact: &'a str,
    /// The addresses of the key that this one replaces, and of the one that replaces it.
    replaces: Option<String>,
    successor: Option<Successor>,
    /// The address of the last request from elsewhere than the key allows.
    refused_from: Option<IpAddr>,
    refusals: Vec<RefusalRow>,
    quality: KeyQuality,
    base_url: &'a str,
}

impl UsagePage<'_> {
    /// Returns whether the page begins with what is wrong.
    fn is_wrong(&self) -> bool {
        let KeyRow { must_be_replaced, only_refused, too_long, .. } = &self.key;
        *must_be_replaced || only_refused.is_some() || too_long.is_some() || self.is_for_vendor()
    }

    /// Returns whether the vendor must be told of it.
    fn is_for_vendor(&self) -> bool {
        let is_vendors = |cause: &Cause| !cause.is_own_setting;
        self.key.often_refused.is_some() || self.key.only_refused.as_ref().is_some_and(is_vendors)
    }
}

/// The key that replaces the one on the page.
struct Successor {
    link: String,
    is_used: bool,
    /// Time at which the old key stops, counted from the first patient that the new one creates.
    stops: String,
}

pub(crate) struct Reason {
    pub(crate) status: u16,
    pub(crate) words: &'static str,
    /// Meaning, and who mends it.
    meaning: &'static str,
    pub(crate) is_own_setting: bool,
    /// Each with how often it was refused.
    pub(crate) fields: Vec<(String, u64)>,
    count: String,
}

impl Reason {
    /// The fields in words, with their counts.
    fn counted_fields(&self) -> String {
        self.counted(field_in_words)
    }

    /// The same for developers.
    fn counted_names(&self) -> String {
        self.counted(|field| field)
    }

    fn counted(&self, name: impl Fn(&str) -> &str) -> String {
        let fields = self.fields.iter().map(|(field, count)| format!("{} ({})", name(field), grouped(*count)));
        fields.collect::<Vec<_>>().join(", ")
    }
}

pub(crate) async fn page(
    SeenKey(OwnKey { visitor, key, filter }): SeenKey,
    activity: Part<dyn KeyActivity>,
    format: Part<KeyFormat>,
    base: Part<BaseUrl>,
) -> Result<HttpResponse, PageError> {
    let now = edge::now();
    let since = first_kept_day(visitor.zone(), now);
    let answers = activity.answers(visitor.organisation(), key.id, since).await?;
    let refusals = activity.refusals(visitor.organisation(), key.id).await?;
    let total = |accepted: bool| {
        let counted = answers.iter().filter(|answer| answer.field.is_none() && is_accepted(answer.code) == accepted);
        grouped(counted.map(|answer| answer.count).sum())
    };
    let reasons = reasons(&answers, &refusals);
    let (list, filter) = (filter.list(), filter.on_key_page());
    let page = UsagePage {
        shell: Shell::new("keys", &visitor),
        list,
        query: filter.query(),
        key: KeyRow::new(&key, &answers, &format, &visitor.signed_in, now),
        accepted: total(true),
        refused: total(false),
        chart: Chart::new(&answers, since),
        rules: rules(&reasons),
        reasons,
        refused_from: refusals.iter().find(|one| one.reason.is_some_and(is_own_setting)).and_then(|one| one.address),
        note: &key.note,
        contact: &key.contact,
        replaces: key.replaces.map(address),
        successor: key.successor.map(Successor::from),
        refusals: refusals.into_iter().map(|refusal| RefusalRow::new(refusal, visitor.zone())).collect(),
        quality: KeyQuality::new(&answers, CREATED),
        base_url: &base.0,
    };
    render(StatusCode::OK, &page)
}

fn address(key: KeyId) -> String {
    format!("/settings/api-keys/{key}")
}

impl From<KeySuccessor> for Successor {
    fn from(KeySuccessor { id, is_used, ends_after }: KeySuccessor) -> Self {
        let stops = match ends_after.whole_hours() {
            0 => "with the new key's first patient".to_owned(),
            1 => "1 hour after the new key's first patient".to_owned(),
            hours @ 2..=24 => format!("{hours} hours after the new key's first patient"),
            hours => format!("{} days after the new key's first patient", hours / 24),
        };
        Self { link: address(id), is_used, stops }
    }
}

/// The most frequent refusals, each with the fields that its answers named; both sorted by how often they occurred.
pub(crate) fn reasons(answers: &[AnswerCount], refusals: &[Refusal]) -> Vec<Reason> {
    let mut by_status: BTreeMap<u16, (u64, BTreeMap<&str, u64>)> = BTreeMap::new();
    for answer in answers.iter().filter(|answer| !is_accepted(answer.code)) {
        let (count, fields) = by_status.entry(answer.code.0).or_default();
        match &answer.field {
            None => *count += answer.count,
            Some(field) => *fields.entry(field).or_default() += answer.count,
        }
    }
    let mut by_status: Vec<_> = by_status.into_iter().collect();
    by_status.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    by_status.truncate(REASONS);
    let reason = |(status, (count, fields)): (u16, (u64, BTreeMap<&str, u64>))| {
        let mut fields: Vec<_> = fields.into_iter().map(|(field, count)| (field.to_owned(), count)).collect();
        fields.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let reason = reason_of(status, refusals);
        let Phrase { words, meaning } = reason.map_or_else(|| phrase_of_status(status), phrase);
        Reason {
            status,
            words,
            meaning,
            is_own_setting: reason.is_some_and(is_own_setting),
            fields,
            count: grouped(count),
        }
    };
    by_status.into_iter().map(reason).collect()
}

/// The rules of the fields that reasons name, as the API documentation has them.
fn rules(reasons: &[Reason]) -> Vec<String> {
    let names: BTreeSet<_> = reasons.iter().flat_map(|reason| &reason.fields).map(|(name, _)| name.as_str()).collect();
    let fields = names.into_iter().filter_map(Field::named).map(Field::definition);
    let rule = |field: &Definition| {
        format!("{}: {}{}", field.name, if field.is_required { "required, " } else { "" }, field.rule)
    };
    fields.map(rule).collect()
}

/// Reason that all refusals with a status have which are kept one by one.
fn reason_of(status: u16, refusals: &[Refusal]) -> Option<RefusalReason> {
    let mut kept = refusals.iter().filter(|refusal| refusal.code.0 == status).map(|refusal| refusal.reason);
    let first = kept.next()?;
    first.filter(|_| kept.all(|reason| reason == first))
}

#[cfg(test)]
mod tests {
    use intake_domain::{AnswerCode, RefusalReason};
    use time::Date;
    use time::macros::date;

    use super::*;

    fn answer(day: Date, status: u16, field: Option<&str>, count: u64) -> AnswerCount {
        AnswerCount { day, code: AnswerCode(status), field: field.map(str::to_owned), count }
    }

    #[test]
    fn a_refusal_is_named_by_its_reason_where_all_have_the_same() {
        let refused = |reason| Refusal {
            at: time::OffsetDateTime::UNIX_EPOCH,
            code: AnswerCode(401),
            reason: Some(reason),
            fields: Vec::new(),
            is_simulated: false,
            address: None,
            request_id: String::new(),
        };
        let [elsewhere, paused] = [RefusalReason::Elsewhere, RefusalReason::Paused].map(refused);
        let named = |refusals: &[Refusal]| reasons(&[answer(date!(2025 - 12 - 03), 401, None, 227)], refusals)[0].words;
        assert_eq!(named(&[elsewhere.clone(), elsewhere.clone()]), "From an address that isn't in Allowed networks");
        assert_eq!(named(&[elsewhere, paused]), "Key not accepted");
        assert_eq!(named(&[]), "Key not accepted");
    }

    #[test]
    fn the_most_frequent_refusal_comes_first_with_its_fields() {
        let day = date!(2025 - 12 - 03);
        let answers = [
            answer(day, 201, None, 1_000),
            answer(day, 400, None, 2),
            answer(day, 422, None, 7),
            answer(day, 422, Some("email"), 3),
            answer(day, 422, Some("phoneNumber"), 6),
        ];
        let shown: Vec<_> = reasons(&answers, &[])
            .iter()
            .map(|reason| (reason.status, reason.counted_fields(), reason.count.clone()))
            .collect();
        assert_eq!(
            shown,
            [
                (422, "Phone number (6), Email address (3)".to_owned(), "7".to_owned()),
                (400, String::new(), "2".to_owned())
            ]
        );
    }
}
