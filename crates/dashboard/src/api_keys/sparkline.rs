//! The small chart of a key in the list: a bar for each of the last 30 days, with refused requests on top of accepted
//! ones. Two paths for a key, because the list shows fifty of them.

use std::fmt::Write;

use intake_domain::AnswerCount;
use time::Date;

use crate::api_keys::chart::days;
use crate::page::number::grouped;

/// The height of the chart, in units of its view box.
const HEIGHT: u64 = 24;
/// The lowest bar: any request is seen, however busy another day was.
const LOWEST: u64 = 2;
/// Distance between two bars.
const STEP: usize = 4;

/// The chart as lines from the bottom up.
pub(crate) struct Sparkline {
    pub(crate) accepted: String,
    pub(crate) refused: String,
    /// The numbers in words.
    pub(crate) words: String,
    /// The numbers alone: "4,890 · 43 refused". Empty: there were no requests.
    pub(crate) numbers: String,
    /// Number of accepted requests of the last day.
    pub(crate) today: String,
}

impl Sparkline {
    pub(crate) fn new(answers: &[AnswerCount], since: Date) -> Self {
        let (days, most) = days(answers, since);
        let height = |count: u64| if count == 0 { 0 } else { (count * (HEIGHT - LOWEST) / most).max(LOWEST) };
        let (mut accepted, mut refused) = (String::new(), String::new());
        for (index, day) in days.iter().enumerate() {
            let x = index * STEP + STEP / 2;
            let (lower, upper) = (height(day.accepted), height(day.refused));
            add_bar(&mut accepted, x, HEIGHT, lower);
            add_bar(&mut refused, x, HEIGHT.saturating_sub(lower), upper);
        }
        let total =
            |count: fn((u64, u64)) -> u64| grouped(days.iter().map(|day| count((day.accepted, day.refused))).sum());
        let (of_accepted, of_refused) = (total(|(accepted, _)| accepted), total(|(_, refused)| refused));
        let (words, numbers) = match (of_accepted.as_str(), of_refused.as_str()) {
            ("0", "0") => ("No requests".to_owned(), String::new()),
            (_, "0") => (format!("{of_accepted} accepted, 0 refused"), of_accepted),
            _ => (
                format!("{of_accepted} accepted, {of_refused} refused"),
                format!("{of_accepted} · {of_refused} refused"),
            ),
        };
        let today = grouped(days.last().map_or(0, |day| day.accepted));
        Self { accepted, refused, words, numbers, today }
    }
}

fn add_bar(path: &mut String, x: usize, bottom: u64, height: u64) {
    if height > 0 {
        // Writing to a text cannot fail.
        let _ = write!(path, "M{x} {bottom}v-{height}");
    }
}

#[cfg(test)]
mod tests {
    use intake_domain::AnswerCode;
    use time::macros::date;

    use super::*;

    const FIRST: Date = date!(2025 - 11 - 04);
    const LAST: Date = date!(2025 - 12 - 03);

    fn answer(day: Date, status: u16, count: u64) -> AnswerCount {
        AnswerCount { day, code: AnswerCode(status), field: None, count }
    }

    #[test]
    fn refused_requests_are_on_top_of_accepted_ones_and_each_day_has_its_place() {
        let answers = [answer(FIRST, 201, 1), answer(LAST, 201, 900), answer(LAST, 422, 100), answer(LAST, 401, 1_000)];
        let drawn = Sparkline::new(&answers, FIRST);
        assert_eq!(drawn.accepted, "M2 24v-2M118 24v-9", "one request is seen");
        assert_eq!(drawn.refused, "M118 15v-12");
        assert_eq!(
            (drawn.words.as_str(), drawn.numbers.as_str()),
            ("901 accepted, 1,100 refused", "901 · 1,100 refused")
        );
    }

    #[test]
    fn a_key_without_requests_has_no_bars() {
        let drawn = Sparkline::new(&[], FIRST);
        assert_eq!(
            (drawn.accepted, drawn.refused, drawn.words.as_str()),
            (String::new(), String::new(), "No requests")
        );
    }
}
