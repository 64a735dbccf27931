//! What the counts of a key's answers say.

use std::collections::BTreeMap;

use intake_domain::{AnswerCode, AnswerCount, BUSY_DAYS, BUSY_REQUESTS, ONLY_REFUSED_MIN};
use time::{Date, Duration};

pub(crate) const CREATED: AnswerCode = AnswerCode(201);
/// Days of which half of the requests must be refused: a week, so that each day of the week counts.
const WEEK: Duration = Duration::WEEK;
/// Refused requests must lie on as many of these days. One wrong patient, sent again and again, is on one.
const REFUSED_DAYS_MIN: usize = 2;

/// A patient was created, or said to be valid.
pub(crate) fn is_accepted(AnswerCode(status): AnswerCode) -> bool {
    (200..300).contains(&status)
}

/// Returns how many requests were refused, if at least half were since yesterday, or in the last week until yesterday.
/// Keys that send more are compared with their own past, in the mails about unusual keys.
pub(crate) fn often_refused(answers: &[AnswerCount], today: Date) -> Option<String> {
    let mut days: BTreeMap<Date, [u64; 2]> = BTreeMap::new();
    for answer in answers.iter().filter(|answer| answer.field.is_none()) {
        let [accepted, refused] = days.entry(answer.day.min(today)).or_default();
        *accepted += if is_accepted(answer.code) { answer.count } else { 0 };
        *refused += if is_vendors_fault(answer.code) { answer.count } else { 0 };
    }
    let used_days = days.values().filter(|[accepted, _]| *accepted > 0).count();
    let accepted: u64 = days.values().map(|[accepted, _]| accepted).sum();
    let at_least = |count: u64, min: i32| i64::try_from(count).is_ok_and(|count| count >= min.into());
    let is_half = |[accepted, refused]: [u64; 2]| at_least(refused, ONLY_REFUSED_MIN) && refused >= accepted;
    let yesterday = today - Duration::DAY;
    if at_least(accepted, BUSY_REQUESTS) && at_least(used_days as u64, BUSY_DAYS) {
        return None;
    }
    let lately = sum(days.range(yesterday..).map(|(_, counts)| counts));
    if is_half(lately) {
        return Some(format!("{} of {} since yesterday", lately[1], lately[0] + lately[1]));
    }
    days.retain(|day, _| *day > today - WEEK);
    let [accepted, refused] = sum(days.values());
    let refused_on: Vec<_> = days.into_iter().filter(|(_, [_, refused])| *refused > 0).map(|(day, _)| day).collect();
    let is_recent = refused_on.last().is_some_and(|last| *last >= yesterday);
    let is_often = is_recent && is_half([accepted, refused]) && refused_on.len() >= REFUSED_DAYS_MIN;
    is_often.then(|| format!("{refused} of {} in the last 7 days", accepted + refused))
}

fn sum<'a>(days: impl Iterator<Item = &'a [u64; 2]>) -> [u64; 2] {
    days.fold([0, 0], |[a, b], [c, d]| [a + c, b + d])
}

/// Returns whether the vendor must change something. While a key is paused or suspended, its requests get 401.
fn is_vendors_fault(AnswerCode(status): AnswerCode) -> bool {
    (400..500).contains(&status) && status != 401
}

#[cfg(test)]
mod tests {
    use time::macros::date;

    use super::*;

    const TODAY: Date = date!(2025 - 12 - 03);

    /// Answers with one status: how many on each day, counted back from today.
    fn answers(status: u16, counts: &[u64]) -> Vec<AnswerCount> {
        let days = (0..).map(|days| TODAY - Duration::days(days));
        let of_day =
            |(day, count): (Date, &u64)| AnswerCount { day, code: AnswerCode(status), field: None, count: *count };
        days.zip(counts).map(of_day).collect()
    }

    #[test]
    fn half_of_a_small_channel_refused_over_days_is_often() {
        let of = |accepted: &[u64], status, refused: &[u64]| {
            often_refused(&[answers(201, accepted), answers(status, refused)].concat(), TODAY)
        };
        let half = Some("7 of 14 in the last 7 days".to_owned());
        assert_eq!(of(&[1; 30], 422, &[1; 30]), half);
        assert_eq!(of(&[1; 30], 400, &[0, 4, 3]), half, "until yesterday");
        let today = |text: &str| Some(format!("{text} since yesterday"));
        assert_eq!(of(&[3, 2, 9, 9], 422, &[7]), today("7 of 12"));
        for (accepted, status, refused, why) in [
            (&[1; 30][..], 422, &[][..], "none"),
            (&[], 422, &[1, 1, 1, 1], "too few"),
            (&[1; 30], 422, &[0, 0, 20], "on one day"),
            (&[1; 30], 422, &[0, 0, 9, 9, 9], "mended since"),
            (&[3; 20], 422, &[2; 20], "less than half"),
            (&[1; 30], 401, &[1; 30], "paused"),
            (&[1; 30], 503, &[9; 30], "a failure of the service"),
            (&[4; 30], 422, &[9; 30], "many requests, of which the past is known"),
        ] {
            assert_eq!(of(accepted, status, refused), None, "{why}");
        }
    }
}
