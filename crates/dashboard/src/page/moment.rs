//! How a page shows a moment: in the language of the page, on the clocks of its organisation.

use std::fmt;

use askama::filters::HtmlSafe;
use intake_domain::{Zone, timestamp};
use intake_edge as edge;
use time::macros::format_description;
use time::{Duration, OffsetDateTime};

use crate::page::day::in_words;

/// A moment as a page shows it.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    at: OffsetDateTime,
    zone: Zone,
    form: Form,
}

#[derive(Clone, Copy)]
enum Form {
    Exact,
    /// A script turns it into "5 minutes ago".
    Relative,
    /// Style sheets let it break.
    End,
    LastDay,
}

/// The moment, with its day and time.
pub(crate) fn exact(at: OffsetDateTime, zone: Zone) -> Moment {
    Moment { at, zone, form: Form::Exact }
}

/// The moment, which a script turns into "5 minutes ago".
pub(crate) fn relative(at: OffsetDateTime, zone: Zone) -> Moment {
    Moment { at, zone, form: Form::Relative }
}

/// The moment until which something works, which is the end of a day if that fits.
pub(crate) fn end(at: OffsetDateTime, zone: Zone) -> Moment {
    Moment { at, zone, form: Form::End }
}

/// The last day on which something works, where there is no room for more.
pub(crate) fn last_day(at: OffsetDateTime, zone: Zone) -> Moment {
    Moment { at, zone, form: Form::LastDay }
}

/// An end in words, after "until": the last day, if the end is the end of a day.
pub(crate) fn end_in_words(at: OffsetDateTime, zone: Zone) -> String {
    let last = zone.local(at - Duration::SECOND);
    if last.date().next_day().map(|day| zone.start_of(day)) != Some(at) {
        return day_and_time(at, zone);
    }
    let day = format_description!("the end of [day padding:none] [month repr:long] [year]");
    // Cannot fail: the type has every component of the formats.
    last.format(day).unwrap_or_else(|_| timestamp(at))
}

/// The moment as a text, with its day whichever that is.
pub(crate) fn day_and_time(at: OffsetDateTime, zone: Zone) -> String {
    let form = format_description!("[day padding:none] [month repr:short] [year], [hour]:[minute]");
    zone.local(at).format(form).unwrap_or_else(|_| timestamp(at))
}

/// The day and time, or only the time if the day is today.
fn exact_in_words(at: OffsetDateTime, zone: Zone, now: OffsetDateTime) -> String {
    let form = format_description!("today, [hour]:[minute]");
    let is_today = zone.day(at) == zone.day(now);
    let today = is_today.then(|| zone.local(at).format(form).ok()).flatten();
    today.unwrap_or_else(|| day_and_time(at, zone))
}

impl Moment {
    /// The moment as a text, for mails.
    pub(crate) fn in_words(self) -> String {
        let Self { at, zone, form } = self;
        match form {
            Form::End => end_in_words(at, zone),
            Form::Exact => exact_in_words(at, zone, edge::now()),
            Form::Relative => day_and_time(at, zone),
            Form::LastDay => in_words(zone.day(at - Duration::MILLISECOND)),
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, form, .. } = *self;
        let attribute = match form {
            Form::Exact | Form::LastDay => "",
            Form::Relative => " data-relative",
            Form::End => " data-end",
        };
        write!(f, "<time datetime=\"{}\"{attribute}>{}</time>", timestamp(at), self.in_words())
    }
}

/// It holds nothing that a person typed.
impl HtmlSafe for Moment {}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    fn sydney() -> Zone {
        "Australia/Sydney".parse().unwrap()
    }

    #[test]
    fn an_end_at_midnight_is_the_end_of_the_day_before() {
        for (at, zone, words) in [
            (datetime!(2027-11-24 0:00 UTC), Zone::default(), "the end of 23 November 2027"),
            (datetime!(2028-01-01 0:00 UTC), Zone::default(), "the end of 31 December 2027"),
            (datetime!(2027-11-24 0:00 UTC), sydney(), "24 Nov 2027, 11:00"),
            (datetime!(2027-11-24 0:00 +11), sydney(), "the end of 23 November 2027"),
            (datetime!(2028-07-01 0:00 +10), sydney(), "the end of 30 June 2028"),
            (datetime!(2027-11-24 0:00 +11), Zone::default(), "23 Nov 2027, 13:00"),
        ] {
            assert_eq!(end_in_words(at, zone), words);
        }
        let shown = end(datetime!(2027-11-24 0:00 UTC), Zone::default()).to_string();
        assert_eq!(shown, "<time datetime=\"2027-11-24T00:00:00.000Z\" data-end>the end of 23 November 2027</time>");
    }

    #[test]
    fn a_last_day_is_the_one_before_midnight() {
        let day = |at, zone| last_day(at, zone).to_string();
        assert!(day(datetime!(2027-11-24 0:00 UTC), Zone::default()).ends_with(">23 Nov 2027</time>"));
        assert!(day(datetime!(2027-11-24 0:01 UTC), Zone::default()).ends_with(">24 Nov 2027</time>"));
        assert!(day(datetime!(2027-11-23 13:00 UTC), sydney()).ends_with(">23 Nov 2027</time>"));
    }

    #[test]
    fn a_moment_is_shown_in_the_language_of_the_page_and_only_with_its_time_if_it_is_today() {
        let at = datetime!(2025-12-02 23:05:00.123 UTC);
        assert_eq!(
            exact(at, sydney()).to_string(),
            "<time datetime=\"2025-12-02T23:05:00.123Z\">3 Dec 2025, 10:05</time>"
        );
        let words = |now| exact_in_words(at, sydney(), now);
        assert_eq!(words(datetime!(2025-12-03 12:59 UTC)), "today, 10:05");
        assert_eq!(words(datetime!(2025-12-03 13:00 UTC)), "3 Dec 2025, 10:05", "it is tomorrow in Sydney");
    }
}
