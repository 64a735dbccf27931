//! A day, as people type it. Browsers with a date control send `2026-12-31`; others send what was typed.

use time::Date;
use time::macros::format_description;

/// Message about a text that is no day.
pub(crate) const NO_DAY: &str = "Enter a date, for example 31/12/2026.";

/// Parses `2026-12-31` or `31/12/2026`, of a year that a calendar has.
pub(crate) fn parse(text: &str) -> Option<Date> {
    let as_sent = Date::parse(text, format_description!("[year]-[month]-[day]"));
    let as_typed = || Date::parse(text, format_description!("[day padding:none]/[month padding:none]/[year]"));
    as_sent.or_else(|_| as_typed()).ok().filter(|day| day.year() >= 1)
}

/// A day in the language of the page.
pub(crate) fn in_words(day: Date) -> String {
    day.format(format_description!("[day padding:none] [month repr:short] [year]")).unwrap_or_default()
}

/// A day with its weekday, in the language of the page.
pub(crate) fn with_weekday(day: Date) -> String {
    format!("{} {}", day.format(format_description!("[weekday repr:short]")).unwrap_or_default(), in_words(day))
}

/// A day of these months, in the language of the page.
pub(crate) fn without_year(day: Date) -> String {
    day.format(format_description!("[day padding:none] [month repr:short]")).unwrap_or_default()
}

/// The type of the field that shows this text again: a date control would drop a text that is no day.
pub(crate) fn field_type(text: &str) -> &'static str {
    let is_as_sent = text.is_empty() || Date::parse(text, format_description!("[year]-[month]-[day]")).is_ok();
    if is_as_sent { "date" } else { "text" }
}

#[cfg(test)]
mod tests {
    use time::macros::date;

    use super::*;

    #[test]
    fn a_day_is_read_as_browsers_and_as_people_write_it() {
        for text in ["2026-12-03", "03/12/2026", "3/12/2026"] {
            assert_eq!(parse(text), Some(date!(2026 - 12 - 03)), "{text}");
        }
        for text in [
            "",
            "3.12.2026",
            "12/31/2026",
            "tomorrow",
            "2026-02-30",
            "0000-01-01",
            "-9999-01-01",
            "31/12/-1",
            "10000-01-01",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(["", "2026-12-03", "3.12.2026"].map(field_type), ["date", "date", "text"]);
    }
}
