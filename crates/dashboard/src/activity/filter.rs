//! Which entries of the audit log are shown, as the address of the page says.

use intake_domain::{ActionKind, EntryFilter, KeyId};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use time::{Date, Duration, OffsetDateTime};

use crate::page::day;
use crate::page::moment::here;

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

/// Filter that was asked for. A day counts where the visitor is, as far as the visitor's script says where that is.
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
    /// Time by which the visitor is ahead of UTC, in minutes. Empty without scripts.
    utc_offset: String,
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
    /// The same for the log.
    pub(crate) fn to_entry_filter(&self) -> Result<EntryFilter, BadFilter> {
        let (first, last) = (parse_day(&self.from)?, parse_day(&self.until)?);
        if first.zip(last).is_some_and(|(first, last)| first > last) {
            return Err(BadFilter::Reversed);
        }
        let begin = |day: Date| -> OffsetDateTime { day.midnight().assume_offset(here(&self.utc_offset)) };
        Ok(EntryFilter {
            kind: ActionKind::ALL.into_iter().find(|kind| words(*kind).0 == self.kind),
            key: self.key()?,
            person: Some(self.person.trim().to_owned()).filter(|person| !person.is_empty()),
            from: first.map(begin),
            until: last.map(|day| begin(day.saturating_add(Duration::DAY))),
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

    /// The address of a page with the same filter, beside an entry (`before=…`), if one is given.
    pub(crate) fn link(&self, page: &str, beside: Option<(&str, &str)>) -> String {
        let offset = if self.from.is_empty() && self.until.is_empty() { "" } else { &self.utc_offset };
        let filter = [
            ("kind", self.kind.as_str()),
            ("person", &self.person),
            ("key", &self.key),
            ("from", &self.from),
            ("until", &self.until),
            ("utc_offset", offset),
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
    use time::macros::datetime;

    use super::*;

    #[test]
    fn a_day_is_the_visitors_and_counts_from_its_begin_to_its_end() {
        let day = || "2026-03-02".to_owned();
        let filter = Filter { from: day(), until: day(), utc_offset: "660".to_owned(), ..Filter::default() };
        let found = filter.to_entry_filter().ok().unwrap();
        assert_eq!(found.from, Some(datetime!(2026-03-01 13:00 UTC)));
        assert_eq!(found.until, Some(datetime!(2026-03-02 13:00 UTC)));
        let in_utc = Filter { from: day(), ..Filter::default() }.to_entry_filter().ok().unwrap();
        assert_eq!((in_utc.from, in_utc.until), (Some(datetime!(2026-03-02 0:00 UTC)), None));
        assert!(Filter { until: "2.3.2026".to_owned(), ..Filter::default() }.to_entry_filter().is_err());
        let reversed = Filter { from: day(), until: "1/3/2026".to_owned(), ..Filter::default() };
        assert_eq!(reversed.to_entry_filter().err(), Some(BadFilter::Reversed));
    }

    #[test]
    fn an_address_keeps_what_was_asked_for() {
        let filter = Filter { kind: "keys".to_owned(), person: "a&b".to_owned(), ..Filter::default() };
        assert_eq!(filter.link("/x", Some(("before", "1"))), "/x?kind=keys&person=a%26b&before=1");
        assert_eq!(Filter::default().link("/x", None), "/x");
        assert!(filter.is_narrow() && !Filter { before: "1".to_owned(), ..Filter::default() }.is_narrow());
        let entries = filter.to_entry_filter().ok().unwrap();
        assert_eq!((entries.kind, entries.person.as_deref()), (Some(ActionKind::Keys), Some("a&b")));
    }
}
