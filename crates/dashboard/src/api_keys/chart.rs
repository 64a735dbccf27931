//! The chart of a key: a bar for each of the last 30 days, with refused requests on top of accepted ones, lines at
//! round numbers, and a date below each Monday. The days are those of the organisation.

use std::collections::BTreeMap;

use intake_domain::{ANSWERS_KEPT, AnswerCount};
use time::{Date, Duration, Weekday};

use crate::api_keys::answers::is_accepted;
use crate::page::day::{with_weekday, without_year};
use crate::page::number::grouped;

const DAYS: i64 = ANSWERS_KEPT.whole_days();
/// The height of the chart, in units of its view box.
const HEIGHT: u64 = 100;
/// The width of a day.
const WIDTH: usize = 10;
/// The chart has room for at least this many requests a day, or a single one would fill it.
const SCALE_MIN: u64 = 10;
/// Least height of a bar that has stripes: 6 pixels of the 160 that the chart has. A lower one could lie between two
/// stripes, so it is solid.
const STRIPED_MIN: u64 = 4;
/// Most distances between the lines of the chart.
const DISTANCES_MAX: u64 = 4;

/// Answers of a day.
pub(crate) struct Day {
    pub(crate) day: Date,
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
}

pub(crate) struct Chart {
    pub(crate) bars: Vec<Bar>,
    /// The numbers at the lines, from the top, and the places of the lines.
    pub(crate) ticks: Vec<String>,
    pub(crate) lines: Vec<u64>,
}

pub(crate) struct Bar {
    day: Date,
    pub(crate) accepted: String,
    pub(crate) refused: String,
    pub(crate) x: usize,
    pub(crate) accepted_y: u64,
    pub(crate) accepted_height: u64,
    pub(crate) refused_height: u64,
}

impl Chart {
    pub(crate) fn new(answers: &[AnswerCount], since: Date) -> Self {
        let (days, most) = days(answers, since);
        let step = step(most);
        let distances = most.div_ceil(step);
        let top = distances * step;
        // Any request is visible, however few there were compared with the busiest day.
        let height = |count: u64| if count == 0 { 0 } else { (count * HEIGHT / top).max(1) };
        let bar = |(index, Day { day, accepted, refused }): (usize, Day)| {
            let (accepted_height, refused_height) = (height(accepted), height(refused));
            let accepted_y = HEIGHT.saturating_sub(accepted_height);
            let [accepted, refused] = [accepted, refused].map(grouped);
            Bar { day, accepted, refused, x: index * WIDTH, accepted_y, accepted_height, refused_height }
        };
        Self {
            bars: days.into_iter().enumerate().map(bar).collect(),
            ticks: (0..=distances).rev().map(|line| grouped(line * step)).collect(),
            lines: (0..=distances).map(|line| line * HEIGHT / distances).collect(),
        }
    }
}

impl Bar {
    /// The day in the language of the page.
    pub(crate) fn label(&self) -> String {
        with_weekday(self.day)
    }

    /// The date below a Monday.
    pub(crate) fn monday(&self) -> Option<String> {
        (self.day.weekday() == Weekday::Monday).then(|| without_year(self.day))
    }

    pub(crate) fn is_striped(&self) -> bool {
        self.refused_height >= STRIPED_MIN
    }

    pub(crate) fn is_weekend(&self) -> bool {
        matches!(self.day.weekday(), Weekday::Saturday | Weekday::Sunday)
    }
}

/// The answers of each day, and the number that the full height of a chart stands for at least.
pub(crate) fn days(answers: &[AnswerCount], since: Date) -> (Vec<Day>, u64) {
    let today = since + Duration::days(DAYS - 1);
    let mut counts: BTreeMap<Date, (u64, u64)> = (0..DAYS).map(|day| (since + Duration::days(day), (0, 0))).collect();
    for answer in answers.iter().filter(|answer| answer.field.is_none()) {
        // Counted in an earlier zone of the organisation, it may be of a day that has not begun in this one.
        let (accepted, refused) = counts.entry(answer.day.min(today)).or_default();
        *(if is_accepted(answer.code) { accepted } else { refused }) += answer.count;
    }
    let busiest = counts.values().map(|(accepted, refused)| accepted + refused).max().unwrap_or(0);
    let day = |(day, (accepted, refused))| Day { day, accepted, refused };
    (counts.into_iter().map(day).collect(), busiest.max(SCALE_MIN))
}

/// The distance between two lines of the chart: 1, 2 or 5 with zeros.
fn step(most: u64) -> u64 {
    let round = |power: u32| [1, 2, 5].map(|digit: u64| digit.saturating_mul(10_u64.saturating_pow(power)));
    (0..).flat_map(round).find(|step| most <= step.saturating_mul(DISTANCES_MAX)).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use intake_domain::AnswerCode;
    use time::macros::date;

    use super::*;

    fn answer(day: Date, status: u16, count: u64) -> AnswerCount {
        AnswerCount { day, code: AnswerCode(status), field: None, count }
    }

    #[test]
    fn every_day_has_a_bar_and_the_busiest_fills_the_chart() {
        let (first, last) = (date!(2025 - 11 - 04), date!(2025 - 12 - 03));
        let answers = [answer(last, 201, 900), answer(last, 422, 100), answer(first, 201, 1)];
        let Chart { bars, ticks, lines } = Chart::new(&answers, first);
        assert_eq!((ticks, lines), (["1,000", "500", "0"].map(str::to_owned).to_vec(), vec![0, 50, 100]));
        assert_eq!((bars.len(), bars[0].day, bars[29].day), (30, first, last));
        assert_eq!((bars[29].accepted_height, bars[29].refused_height, bars[29].accepted_y), (90, 10, 10));
        assert!(bars[29].is_striped());
        assert_eq!((bars[0].accepted_height, bars[0].accepted_y), (1, 99), "one request is seen");
        assert_eq!((bars[1].accepted_height, bars[1].refused_height), (0, 0));
    }

    #[test]
    fn a_low_bar_of_refusals_is_solid() {
        let day = date!(2025 - 12 - 03);
        let striped = [1, 4].map(|refused| {
            let chart = Chart::new(&[answer(day, 201, 90), answer(day, 422, refused)], day - Duration::days(29));
            chart.bars[29].is_striped()
        });
        assert_eq!(striped, [false, true]);
    }

    #[test]
    fn lines_are_at_round_numbers_and_none_is_below_the_busiest_day() {
        for (most, top, lines) in
            [(10, "10", 3), (13, "15", 4), (20_904, "30,000", 4), (99, "100", 3), (7_000, "8,000", 5)]
        {
            let day = date!(2025 - 12 - 03);
            let chart = Chart::new(&[answer(day, 201, most)], day - Duration::days(29));
            assert_eq!((chart.ticks[0].as_str(), chart.ticks.len(), chart.lines.len()), (top, lines, lines), "{most}");
        }
    }

    #[test]
    fn mondays_have_their_dates_and_weekends_are_known() {
        let chart = Chart::new(&[answer(date!(2025 - 12 - 03), 201, 1_234)], date!(2025 - 11 - 04));
        let mondays: Vec<_> = chart.bars.iter().filter_map(Bar::monday).collect();
        assert_eq!(mondays, ["10 Nov", "17 Nov", "24 Nov", "1 Dec"]);
        assert_eq!(chart.bars.iter().filter(|bar| bar.is_weekend()).count(), 8);
        assert!(chart.bars[4].is_weekend() && chart.bars[4].label() == "Sat 8 Nov 2025");
        assert_eq!(chart.bars[29].accepted, "1,234");
    }

    #[test]
    fn a_request_of_a_day_that_has_not_begun_is_one_of_today() {
        let day = date!(2025 - 12 - 03);
        let (days, _) = days(&[answer(day + Duration::DAY, 201, 1)], day - Duration::days(29));
        assert_eq!((days.len(), days[29].day, days[29].accepted), (30, day, 1));
    }

    #[test]
    fn a_single_request_does_not_fill_the_chart_and_a_dry_run_is_no_refusal() {
        let day = date!(2025 - 12 - 03);
        let bars = Chart::new(&[answer(day, 200, 1)], day - Duration::days(29)).bars;
        assert_eq!((bars[29].accepted_height, bars[29].refused_height), (10, 0));
    }
}
