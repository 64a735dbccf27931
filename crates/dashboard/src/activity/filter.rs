//! Which entries of the audit log are shown, as the address of the page says.

use intake_domain::{ActionKind, EntryFilter, KeyId, Zone};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use time::{Date, Duration};

use crate::page::day;

/// Returns what a kind is called in addresses and on the page.
fn words(kind: ActionKind) -> (&'static str, &'static str) {
    match kind {
        ActionKind::Keys => ("keys", "API keys"),
        ActionKind::Organisation => ("organisation", "Organisation"),
        ActionKind::Members => ("members", "Members"),
        ActionKind::SignIns => ("sign-ins", "Sign-ins"),
        ActionKind::Accounts => ("accounts", "Accounts"),
        ActionKind::Patients => ("patients", "Patients"),
    }
}

/// Filter that was asked for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Filter {
    pub(crate) kind: String,
    pub(crate) person: String,
    /// The id of an API key. Empty: all entries.
    pub(crate) key: String,
    /// The first day.
    pub(crate) from: String,
    /// The last day.
    pub(crate) until: String,
    /// The entry before or after which to look.
    pub(crate) before: String,
    pub(crate) after: String,
}

/// Reason why nothing can be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadFilter {
    NoDay,
    Reversed,
    NoKey,
}

impl Filter {
    /// The same for the log, with the days of a zone.
    pub(crate) fn to_entry_filter(&self, zone: Zone) -> Result<EntryFilter, BadFilter> {
        let (first, last) = (parse_day(&self.from)?, parse_day(&self.until)?);
        if first.zip(last).is_some_and(|(first, last)| first > last) {
            return Err(BadFilter::Reversed);
        }
        Ok(EntryFilter {
            kind: ActionKind::ALL.into_iter().find(|kind| words(*kind).0 == self.kind),
            key: self.key()?,
            person: Some(self.person.trim().to_owned()).filter(|person| !person.is_empty()),
            from: first.map(|day| zone.start_of(day)),
            until: last.map(|day| zone.start_of(day.saturating_add(Duration::DAY))),
        })
    }

    fn key(&self) -> Result<Option<KeyId>, BadFilter> {
        let key = Some(&self.key).filter(|key| !key.is_empty());
        key.map(|key| key.parse()).transpose().map_err(|_| BadFilter::NoKey)
    }

    /// The type of the field that shows this text.
    pub(crate) fn date_type(text: &str) -> &'static str {
        day::field_type(text)
    }

    /// Value, text, and whether it is chosen.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        let chosen = self.kind.clone();
        let all = [("", "Everything")].into_iter().chain(ActionKind::ALL.map(words));
        all.map(move |(value, text)| (value, text, value == chosen))
    }

    /// Returns whether anything is left out.
    pub(crate) fn is_narrow(&self) -> bool {
        [&self.kind, &self.person, &self.key, &self.from, &self.until].iter().any(|text| !text.is_empty())
    }

    /// The same filter for the week before this one, which ends on Sunday.
    pub(crate) fn last_week(&self, today: Date) -> Self {
        let monday = today - Duration::days(today.weekday().number_days_from_monday().into());
        let [from, until] = [monday - Duration::WEEK, monday - Duration::DAY].map(|day| day.to_string());
        Self { from, until, before: String::new(), after: String::new(), ..self.clone() }
    }

    /// The address of a page with the same filter, beside an entry (`before=…`), if one is given.
    pub(crate) fn link(&self, page: &str, beside: Option<(&str, &str)>) -> String {
        let filter = [
            ("kind", self.kind.as_str()),
            ("person", &self.person),
            ("key", &self.key),
            ("from", &self.from),
            ("until", &self.until),
        ];
        let given = filter.into_iter().chain(beside).filter(|(_, value)| !value.is_empty());
        let pairs = given.map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)));
        let pairs: Vec<_> = pairs.collect();
        if pairs.is_empty() { page.to_owned() } else { format!("{page}?{}", pairs.join("&")) }
    }
}

fn parse_day(text: &str) -> Result<Option<Date>, BadFilter> {
    if text.is_empty() {
        return Ok(None);
    }
    day::parse(text).map(Some).ok_or(BadFilter::NoDay)
}

#[cfg(test)]
mod tests {
    use time::macros::{date, datetime};

    use super::*;

    #[test]
    fn last_week_is_from_monday_to_sunday() {
        for today in [date!(2026 - 03 - 09), date!(2026 - 03 - 15)] {
            let filter = Filter { kind: "keys".to_owned(), before: "1".to_owned(), ..Filter::default() };
            assert_eq!(
                filter.last_week(today).link("/x", None),
                "/x?kind=keys&from=2026%2D03%2D02&until=2026%2D03%2D08"
            );
        }
    }

    #[test]
    fn a_day_counts_from_its_begin_to_its_end_in_the_zone() {
        let (sydney, utc) = ("Australia/Sydney".parse().unwrap(), Zone::default());
        let day = || "2026-03-02".to_owned();
        let filter = Filter { from: day(), until: day(), ..Filter::default() };
        let found = filter.to_entry_filter(sydney).ok().unwrap();
        assert_eq!(found.from, Some(datetime!(2026-03-01 13:00 UTC)));
        assert_eq!(found.until, Some(datetime!(2026-03-02 13:00 UTC)));
        let in_utc = Filter { from: day(), ..Filter::default() }.to_entry_filter(utc).ok().unwrap();
        assert_eq!((in_utc.from, in_utc.until), (Some(datetime!(2026-03-02 0:00 UTC)), None));
        assert!(Filter { until: "2.3.2026".to_owned(), ..Filter::default() }.to_entry_filter(utc).is_err());
        let reversed = Filter { from: day(), until: "1/3/2026".to_owned(), ..Filter::default() };
        assert_eq!(reversed.to_entry_filter(utc).err(), Some(BadFilter::Reversed));
    }

    #[test]
    fn an_address_keeps_what_was_asked_for() {
        let filter = Filter { kind: "keys".to_owned(), person: "a&b".to_owned(), ..Filter::default() };
        assert_eq!(filter.link("/x", Some(("before", "1"))), "/x?kind=keys&person=a%26b&before=1");
        assert_eq!(Filter::default().link("/x", None), "/x");
        assert!(filter.is_narrow() && !Filter { before: "1".to_owned(), ..Filter::default() }.is_narrow());
        let entries = filter.to_entry_filter(Zone::default()).ok().unwrap();
        assert_eq!((entries.kind, entries.person.as_deref()), (Some(ActionKind::Keys), Some("a&b")));
    }
}
