//! The page of a key: what is known about it, and how it was used in the last 30 days: a bar for each day with accepted and
//! refused requests, why requests were refused, and the last refusals with their request ids.

use std::collections::BTreeMap;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path, Query};
use askama::Template;
use intake_domain::{ANSWERS_KEPT, AnswerCount, KeyFormat, KeyId, KeyStore, list_keys};
use intake_http::edge;
use time::macros::format_description;
use time::{Date, Duration, OffsetDateTime};

use crate::api_keys::filter::Filter;
use crate::api_keys::list::KeyRow;
use crate::api_keys::refusals::RefusalRow;
use crate::page::error::PageError;
use crate::page::shell::{Shell, render};
use crate::page::visitor::Visitor;

const DAYS: i64 = ANSWERS_KEPT.whole_days();
/// The height of the chart, in units of its view box.
const HEIGHT: u64 = 100;
/// The chart is no lower than for so many requests a day, or a single one would fill it.
const SCALE_MIN: u64 = 10;
/// How many reasons are shown: the others are rare.
const REASONS: usize = 8;

#[derive(Template)]
#[template(path = "api_keys/usage.html")]
struct UsagePage<'a> {
    shell: Shell,
    message: Option<String>,
    /// The list with the search that led here.
    list: String,
    /// What the forms of the page carry, so that they lead back to it.
    fields: Vec<(&'static str, String)>,
    key: KeyRow,
    accepted: u64,
    refused: u64,
    days: Vec<Day>,
    /// What the height of the chart stands for.
    most: u64,
    reasons: Vec<Reason>,
    /// What people have written down about the key.
    note: &'a str,
    refusals: Vec<RefusalRow>,
}

/// A bar of the chart: refused requests on top of accepted ones.
struct Day {
    x: usize,
    day: Date,
    accepted: u64,
    refused: u64,
    accepted_height: u64,
    refused_height: u64,
    accepted_y: u64,
    refused_y: u64,
}

impl Day {
    /// The day in the language of the page.
    fn label(&self) -> String {
        self.day.format(format_description!("[day padding:none] [month repr:short] [year]")).unwrap_or_default()
    }
}

struct Reason {
    status: u16,
    fields: String,
    count: u64,
}

pub(crate) async fn page(
    visitor: Visitor,
    id: Path<String>,
    filter: Option<Query<Filter>>,
    keys: Data<dyn KeyStore>,
    format: Data<KeyFormat>,
) -> Result<HttpResponse, PageError> {
    // All of them, because the page tells of the key's replacement, too.
    let all = list_keys(keys.as_ref(), visitor.organisation()).await?;
    let id: KeyId = id.parse().map_err(|_| PageError::NotFound)?;
    let key = all.iter().find(|key| key.id == id).ok_or(PageError::NotFound)?;
    let filter = filter.map(Query::into_inner).unwrap_or_default();
    let message = filter.done.message(key).filter(|_| filter.key == key.id.to_string());
    let now = edge::now();
    let since = first_day(now);
    let answers = keys.answers(visitor.organisation(), key.id, since).await?;
    let refusals = keys.refusals(visitor.organisation(), key.id).await?;
    let total = |accepted: bool| {
        let counted = answers.iter().filter(|answer| answer.field.is_none() && is_accepted(answer.status) == accepted);
        counted.map(|answer| answer.count).sum()
    };
    let (days, most) = days(&answers, since);
    let page = UsagePage {
        shell: Shell::new("keys", &visitor),
        message,
        list: filter.list(),
        fields: filter.on_key_page().fields(),
        key: KeyRow::new(key, &all, &format, now),
        accepted: total(true),
        refused: total(false),
        days,
        most,
        reasons: reasons(&answers),
        note: &key.note,
        refusals: refusals.into_iter().map(RefusalRow::from).collect(),
    };
    render(StatusCode::OK, &page)
}

/// A patient was created, or said to be valid.
fn is_accepted(status: u16) -> bool {
    (200..300).contains(&status)
}

fn first_day(now: OffsetDateTime) -> Date {
    now.date() - Duration::days(DAYS - 1)
}

/// A bar for each day, and how many requests the full height stands for.
fn days(answers: &[AnswerCount], since: Date) -> (Vec<Day>, u64) {
    let mut counts: BTreeMap<Date, (u64, u64)> = (0..DAYS).map(|day| (since + Duration::days(day), (0, 0))).collect();
    for answer in answers.iter().filter(|answer| answer.field.is_none()) {
        let (accepted, refused) = counts.entry(answer.day).or_default();
        *(if is_accepted(answer.status) { accepted } else { refused }) += answer.count;
    }
    let busiest = counts.values().map(|(accepted, refused)| accepted + refused).max().unwrap_or(0);
    let highest = busiest.max(SCALE_MIN);
    // Any request is visible, however few there were compared with the busiest day.
    let height = |count: u64| if count == 0 { 0 } else { (count * HEIGHT / highest).max(1) };
    let bar = |(x, (day, (accepted, refused))): (usize, (Date, (u64, u64)))| {
        let (accepted_height, refused_height) = (height(accepted), height(refused));
        let accepted_y = HEIGHT.saturating_sub(accepted_height);
        let refused_y = accepted_y.saturating_sub(refused_height);
        Day { x: x * 10, day, accepted, refused, accepted_height, refused_height, accepted_y, refused_y }
    };
    (counts.into_iter().enumerate().map(bar).collect(), highest)
}

/// The most frequent refusals, each with the fields that its answers named; both sorted by how often they occurred.
fn reasons(answers: &[AnswerCount]) -> Vec<Reason> {
    let mut by_status: BTreeMap<u16, (u64, BTreeMap<&str, u64>)> = BTreeMap::new();
    for answer in answers.iter().filter(|answer| !is_accepted(answer.status)) {
        let (count, fields) = by_status.entry(answer.status).or_default();
        match &answer.field {
            None => *count += answer.count,
            Some(field) => *fields.entry(field).or_default() += answer.count,
        }
    }
    let reason = |(status, (count, fields)): (u16, (u64, BTreeMap<&str, u64>))| {
        let mut fields: Vec<_> = fields.into_iter().collect();
        fields.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let fields: Vec<_> = fields.iter().map(|(field, count)| format!("{field} ({count})")).collect();
        Reason { status, fields: fields.join(", "), count }
    };
    let mut reasons: Vec<_> = by_status.into_iter().map(reason).collect();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.count));
    reasons.truncate(REASONS);
    reasons
}

#[cfg(test)]
mod tests {
    use time::macros::date;

    use super::*;

    fn answer(day: Date, status: u16, field: Option<&str>, count: u64) -> AnswerCount {
        AnswerCount { day, status, field: field.map(str::to_owned), count }
    }

    #[test]
    fn every_day_has_a_bar_and_the_busiest_fills_the_chart() {
        let (first, last) = (date!(2025 - 11 - 04), date!(2025 - 12 - 03));
        let (bars, most) =
            days(&[answer(last, 201, None, 900), answer(last, 422, None, 100), answer(first, 201, None, 1)], first);
        assert_eq!(most, 1_000);
        assert_eq!((bars.len(), bars[0].day, bars[29].day), (30, first, last));
        assert_eq!((bars[29].accepted_height, bars[29].refused_height, bars[29].refused_y), (90, 10, 0));
        assert_eq!((bars[0].accepted_height, bars[0].accepted_y), (1, 99), "one request is seen");
        assert_eq!((bars[1].accepted_height, bars[1].refused_height), (0, 0));
    }

    #[test]
    fn a_single_request_does_not_fill_the_chart_and_a_dry_run_is_no_refusal() {
        let day = date!(2025 - 12 - 03);
        let (bars, most) = days(&[answer(day, 200, None, 1)], day - Duration::days(29));
        assert_eq!((most, bars[29].accepted_height, bars[29].refused_height), (10, 10, 0));
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
        let shown: Vec<_> =
            reasons(&answers).into_iter().map(|reason| (reason.status, reason.fields, reason.count)).collect();
        assert_eq!(shown, [(422, "phoneNumber (6), email (3)".to_owned(), 7), (400, String::new(), 2)]);
    }
}
