//! How a page shows a moment: in UTC and the language of the page, which a script turns into the reader's own time
//! zone.

use std::fmt;
use std::ops::RangeInclusive;

use askama::filters::HtmlSafe;
use intake_domain::timestamp;
use time::macros::format_description;
use time::{Duration, OffsetDateTime, Time, UtcOffset};

use crate::page::day::in_words;

/// A moment as a page shows it.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    at: OffsetDateTime,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Exact,
    /// A script turns it into "5 minutes ago".
    Relative,
    /// If it is midnight where the reader is, a script turns it into "the end of 23 November 2027".
    End,
    /// A script turns it into the last day where the reader is.
    LastDay,
}

/// The moment, with its day and time.
pub(crate) fn exact(at: OffsetDateTime) -> Moment {
    Moment { at, form: Form::Exact }
}

/// The moment, which a script turns into "5 minutes ago".
pub(crate) fn relative(at: OffsetDateTime) -> Moment {
    Moment { at, form: Form::Relative }
}

/// The moment until which something works, which is the end of a day if that fits.
pub(crate) fn end(at: OffsetDateTime) -> Moment {
    Moment { at, form: Form::End }
}

/// The last day on which something works, where there is no room for more.
pub(crate) fn last_day(at: OffsetDateTime) -> Moment {
    Moment { at, form: Form::LastDay }
}

/// An end in words, after "until": the last day in UTC, if the end is the end of a day there.
pub(crate) fn end_in_words(at: OffsetDateTime) -> String {
    let utc = at.to_offset(UtcOffset::UTC);
    if utc.time() != Time::MIDNIGHT {
        return in_utc(at);
    }
    let day = format_description!("the end of [day padding:none] [month repr:long] [year], UTC");
    // A moment has everything that the forms ask for.
    (utc - Duration::SECOND).format(day).unwrap_or_else(|_| timestamp(at))
}

fn in_utc(at: OffsetDateTime) -> String {
    let form = format_description!("[day padding:none] [month repr:short] [year], [hour]:[minute] UTC");
    at.to_offset(UtcOffset::UTC).format(form).unwrap_or_else(|_| timestamp(at))
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.form {
            Form::End => end_in_words(self.at),
            Form::Exact | Form::Relative => in_utc(self.at),
            Form::LastDay => in_words((self.at - Duration::MILLISECOND).to_offset(UtcOffset::UTC).date()),
        };
        let attribute = match self.form {
            Form::Exact => "",
            Form::Relative => " data-relative",
            Form::End => " data-end",
            Form::LastDay => " data-last-day",
        };
        write!(f, "<time datetime=\"{}\"{attribute}>{text}</time>", timestamp(self.at))
    }
}

/// It holds nothing that a person typed.
impl HtmlSafe for Moment {}

/// The time zones furthest from UTC, in minutes.
const ZONES: RangeInclusive<i32> = -12 * 60..=14 * 60;

/// The offset from UTC of a visitor whose script says how many minutes that is; without one, none.
pub(crate) fn here(utc_offset: &str) -> UtcOffset {
    let minutes = utc_offset.parse().ok().filter(|minutes| ZONES.contains(minutes));
    minutes.and_then(|minutes| UtcOffset::from_whole_seconds(minutes * 60).ok()).unwrap_or(UtcOffset::UTC)
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn an_end_at_midnight_is_the_end_of_the_day_before() {
        assert_eq!(end_in_words(datetime!(2027-11-24 0:00 UTC)), "the end of 23 November 2027, UTC");
        assert_eq!(end_in_words(datetime!(2028-01-01 0:00 UTC)), "the end of 31 December 2027, UTC");
        assert_eq!(
            end_in_words(datetime!(2027-11-24 0:00 +11)),
            "23 Nov 2027, 13:00 UTC",
            "a script says it in Sydney"
        );
        let end = end(datetime!(2027-11-24 0:00 UTC)).to_string();
        let expected = "<time datetime=\"2027-11-24T00:00:00.000Z\" data-end>the end of 23 November 2027, UTC</time>";
        assert_eq!(end, expected);
    }

    #[test]
    fn a_last_day_is_the_one_before_midnight() {
        let day = |at| last_day(at).to_string();
        assert!(day(datetime!(2027-11-24 0:00 UTC)).ends_with(" data-last-day>23 Nov 2027</time>"));
        assert!(day(datetime!(2027-11-24 0:01 UTC)).ends_with(" data-last-day>24 Nov 2027</time>"));
    }

    #[test]
    fn a_moment_is_shown_in_the_language_of_the_page_with_its_zone() {
        assert_eq!(
            exact(datetime!(2025-12-03 10:05:00.123 +11)).to_string(),
            "<time datetime=\"2025-12-02T23:05:00.123Z\">2 Dec 2025, 23:05 UTC</time>"
        );
    }
}
