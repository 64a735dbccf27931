//! Patients by channel: how many arrived through each key in the last 30 days, by week. From counts alone: no
//! patient is read.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use intake_domain::{
    AnswerCount, KeyActivity, KeyRecord, REPLAYED, StoreError, first_kept_day, list_keys, patients_of,
};
use intake_edge as edge;
use time::{Date, Duration};

use crate::api_keys::answers::CREATED;
use crate::api_keys::sparkline::Sparkline;
use crate::page::csv;
use crate::page::day::without_year;
use crate::page::error::PageError;
use crate::page::number::{counted, grouped};
use crate::page::part::{Keys, Part};
use crate::page::shell::{Shell, render};
use crate::page::visitor::Visitor;

/// Keys with a row of their own: more than a clinic has channels. The others are one row.
const ROWS_MAX: usize = 100;
/// Keys that are shown before the others are unfolded: those that matter.
const ROWS_SHOWN: usize = 10;

#[derive(Template)]
#[template(path = "api_keys/channels.html")]
struct ChannelsPage {
    shell: Shell,
    /// The weeks: "3 Nov–9 Nov", "Last week", "This week so far".
    weeks: Vec<String>,
    /// All keys together first.
    rows: Vec<Channel>,
    /// Further keys, which are folded away, and how many they are.
    further: Vec<Channel>,
    further_count: String,
    /// The patients of each vendor contact that is named, the most first.
    vendors: Vec<(String, String)>,
    /// "24 keys": those that work or are paused and sent none.
    others: Option<String>,
}

/// The patients of a key, or of several.
struct Channel {
    name: String,
    /// The address of the key's page, if it is one key.
    link: Option<String>,
    hint: String,
    /// The bars of the days.
    bars: String,
    /// The patients of each week.
    weeks: Vec<String>,
    total: String,
    /// "38%".
    share: String,
}

/// Number of patients on each day that had any.
type ByDay = BTreeMap<Date, u64>;

pub(crate) async fn channels(
    visitor: Visitor,
    keys: Part<dyn Keys>,
    activity: Part<dyn KeyActivity>,
) -> Result<HttpResponse, PageError> {
    let now = edge::now();
    let since = first_kept_day(visitor.zone(), now);
    let all = list_keys(keys.as_ref(), visitor.organisation()).await?;
    let by_key = patients(&all, &visitor, activity.as_ref(), since).await?;
    let has_sent = |key: &KeyRecord| by_key.iter().any(|(one, _)| one.id == key.id);
    let others = all.iter().filter(|key| !key.is_over(now) && !has_sent(key)).count();
    let others = Some(counted(others, "key")).filter(|_| others > 0);
    let sum = merged(by_key.iter().map(|(_, days)| days));
    let weeks = weeks(since);
    let mut rows = if sum.is_empty() { Vec::new() } else { channels_of(&by_key, &sum, &weeks, since) };
    let further = rows.split_off(rows.len().min(1 + ROWS_SHOWN));
    let page = ChannelsPage {
        shell: Shell::new("keys", &visitor),
        weeks: weeks.into_iter().map(|week| label(week, since)).collect(),
        rows,
        further,
        further_count: counted(by_key.len().saturating_sub(ROWS_SHOWN), "more key"),
        vendors: vendors(&by_key),
        others,
    };
    render(StatusCode::OK, &page)
}

/// The same as a file: a row for each key and day that had patients.
pub(crate) async fn download(
    visitor: Visitor,
    keys: Part<dyn Keys>,
    activity: Part<dyn KeyActivity>,
) -> Result<HttpResponse, PageError> {
    let since = first_kept_day(visitor.zone(), edge::now());
    let all = list_keys(keys.as_ref(), visitor.organisation()).await?;
    let by_key = patients(&all, &visitor, activity.as_ref(), since).await?;
    let header = ["Day", "Key", "Last characters", "Vendor contact", "Key ID", "Patients"];
    let rows = by_key.iter().flat_map(|(key, days)| {
        days.iter().map(|(day, patients)| {
            let (name, hint, contact) = (key.name.clone(), key.hint.clone(), key.contact.clone());
            [day.to_string(), name, hint, contact, key.id.to_string(), patients.to_string()]
        })
    });
    csv::file("patients-by-channel", &visitor, header, rows)
}

/// The keys that sent patients, those with the most first.
async fn patients<'a>(
    keys: &'a [KeyRecord],
    visitor: &Visitor,
    activity: &dyn KeyActivity,
    since: Date,
) -> Result<Vec<(&'a KeyRecord, ByDay)>, StoreError> {
    let ids: Vec<_> = keys.iter().map(|key| key.id).collect();
    let answers = activity.answers_by_key(visitor.organisation(), &ids, &[REPLAYED], since).await?;
    let mut by_key: Vec<_> = keys.iter().filter_map(|key| Some((key, by_day(answers.get(&key.id)?)))).collect();
    by_key.retain(|(_, days)| !days.is_empty());
    by_key.sort_by_key(|(_, days)| Reverse(total(days)));
    Ok(by_key)
}

/// A row for all keys, one for each key, and one for those that are too many.
fn channels_of(by_key: &[(&KeyRecord, ByDay)], sum: &ByDay, weeks: &[Date], since: Date) -> Vec<Channel> {
    let (named, others) = by_key.split_at(by_key.len().min(ROWS_MAX));
    let rest = merged(others.iter().map(|(_, days)| days));
    let of_others = (!others.is_empty()).then_some(&rest);
    let all: Vec<_> = named.iter().map(|(_, days)| days).chain(of_others).collect();
    let mut shares = shares(&all.iter().map(|days| total(days)).collect::<Vec<_>>()).into_iter();
    let mut row = |name, days| Channel::new(name, days, shares.next().unwrap_or_default(), weeks, since);
    let mut rows = vec![Channel::new("All keys".to_owned(), sum, 100, weeks, since)];
    for (key, days) in named {
        let (link, hint) = (Some(format!("/settings/api-keys/{}", key.id)), format!("…{}", key.hint));
        rows.push(Channel { link, hint, ..row(key.name.clone(), days) });
    }
    rows.extend(of_others.map(|days| row(counted(others.len(), "other key"), days)));
    rows
}

/// The patients of each vendor contact.
fn vendors(by_key: &[(&KeyRecord, ByDay)]) -> Vec<(String, String)> {
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    for (key, days) in by_key.iter().filter(|(key, _)| !key.contact.is_empty()) {
        *totals.entry(&key.contact).or_default() += total(days);
    }
    let mut totals: Vec<_> = totals.into_iter().collect();
    totals.sort_by_key(|(_, total)| Reverse(*total));
    totals.into_iter().map(|(contact, total)| (contact.to_owned(), grouped(total))).collect()
}

/// The share of each number in percent. They add up to 100: those that lost most by rounding down are rounded up.
fn shares(totals: &[u64]) -> Vec<u64> {
    let sum = totals.iter().sum::<u64>().max(1);
    let mut shares: Vec<_> = totals.iter().map(|total| total * 100 / sum).collect();
    let mut by_loss: Vec<_> = totals.iter().map(|total| total * 100 % sum).zip(&mut shares).collect();
    by_loss.sort_by_key(|(loss, _)| Reverse(*loss));
    let missing = by_loss.iter().map(|(loss, _)| loss).sum::<u64>() / sum;
    by_loss.into_iter().zip(0..missing).for_each(|((_, share), _)| *share += 1);
    shares
}

/// The patients of a key by day. A repeated answer is no patient.
fn by_day(answers: &[AnswerCount]) -> ByDay {
    let mut of_days: BTreeMap<Date, Vec<AnswerCount>> = BTreeMap::new();
    for answer in answers {
        of_days.entry(answer.day).or_default().push(answer.clone());
    }
    let patients = of_days.into_iter().map(|(day, answers)| (day, patients_of(&answers, CREATED)));
    patients.filter(|(_, patients)| *patients > 0).collect()
}

fn merged<'a>(all: impl Iterator<Item = &'a ByDay>) -> ByDay {
    let mut sum = ByDay::new();
    for (day, patients) in all.flatten() {
        *sum.entry(*day).or_default() += patients;
    }
    sum
}

fn total(days: &ByDay) -> u64 {
    days.values().sum()
}

/// The Mondays of the weeks that lie within the last 30 days, and of the present one. A part of a week would look like
/// a fall.
fn weeks(since: Date) -> Vec<Date> {
    let first = monday(since + Duration::days(6));
    (0..).map(|week| first + Duration::weeks(week)).take_while(|monday| *monday <= today(since)).collect()
}

/// The last of the 30 days.
fn today(since: Date) -> Date {
    since + Duration::days(29)
}

/// The name of a week.
fn label(week: Date, since: Date) -> String {
    match (monday(today(since)) - week).whole_weeks() {
        0 => "This week so far".to_owned(),
        1 => "Last week".to_owned(),
        _ => format!("{}–{}", without_year(week), without_year(week + Duration::days(6))),
    }
}

fn monday(day: Date) -> Date {
    day - Duration::days(day.weekday().number_days_from_monday().into())
}

impl Channel {
    fn new(name: String, days: &ByDay, share: u64, weeks: &[Date], since: Date) -> Self {
        let count = |(day, count): (&Date, &u64)| AnswerCount { day: *day, code: CREATED, field: None, count: *count };
        let bars = Sparkline::new(&days.iter().map(count).collect::<Vec<_>>(), since).accepted;
        let of_week =
            |week: Date| days.iter().filter(|(day, _)| monday(**day) == week).map(|(_, count)| count).sum::<u64>();
        Self {
            name,
            link: None,
            hint: String::new(),
            bars,
            weeks: weeks.iter().map(|week| grouped(of_week(*week))).collect(),
            total: grouped(total(days)),
            share: if share == 0 { "under 1%".to_owned() } else { format!("{share}%") },
        }
    }
}

#[cfg(test)]
mod tests {
    use time::macros::date;

    use super::*;

    const SINCE: Date = date!(2025 - 11 - 04);

    fn answer(day: Date, field: Option<&str>, count: u64) -> AnswerCount {
        AnswerCount { day, code: CREATED, field: field.map(str::to_owned), count }
    }

    #[test]
    fn patients_are_counted_by_the_weeks_that_people_know() {
        assert_eq!(
            weeks(SINCE).into_iter().map(|week| label(week, SINCE)).collect::<Vec<_>>().join(", "),
            "10 Nov–16 Nov, 17 Nov–23 Nov, Last week, This week so far"
        );
        let sunday = date!(2025 - 11 - 09);
        let answers = [
            answer(SINCE, None, 3),
            answer(SINCE, Some(REPLAYED), 1),
            answer(sunday, None, 1_000),
            answer(sunday + Duration::DAY, None, 4),
            answer(date!(2025 - 12 - 03), Some(REPLAYED), 4),
        ];
        let days = by_day(&answers);
        let shown = Channel::new("Desk".to_owned(), &days, 50, &weeks(SINCE), SINCE);
        assert_eq!(weeks(date!(2025 - 11 - 03))[0], date!(2025 - 11 - 03), "a week that lies within the days");
        assert_eq!(shown.weeks, ["4", "0", "0", "0"]);
        assert_eq!((shown.total.as_str(), shown.share.as_str()), ("1,006", "50%"));
        assert!(shown.bars.starts_with("M2 24v-2M22 24v-"), "{}", shown.bars);
    }

    #[test]
    fn a_small_share_is_not_nothing() {
        let few = by_day(&[answer(SINCE, None, 1)]);
        let [_, share] = shares(&[999, 1])[..] else { panic!("a share each") };
        assert_eq!(Channel::new("Desk".to_owned(), &few, share, &weeks(SINCE), SINCE).share, "under 1%");
    }

    #[test]
    fn shares_add_up_to_a_hundred() {
        assert_eq!(shares(&[59, 536]), [10, 90]);
        assert_eq!(shares(&[1, 1, 1]), [34, 33, 33]);
        assert_eq!(shares(&[7; 15]).iter().sum::<u64>(), 100);
        assert_eq!((shares(&[]), shares(&[0])), (vec![], vec![0]));
    }
}
