//! Which keys the list shows, and in which order, as the address of the page says.

use std::cmp::Reverse;

use intake_domain::{KeyRecord, KeyStatus};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use time::{Duration, OffsetDateTime};

/// Keys on one page.
const PAGE: usize = 50;
/// For how long a key that is over stays among the others: long enough to see what was done last.
const RECENT: Duration = Duration::days(7);
/// Fewer keys than this need neither search nor order.
const FEW: usize = 10;

/// The search, status, order and page that were asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Filter {
    q: String,
    show: Show,
    sort: Sort,
    page: usize,
    /// The key that was just revoked, to be named in a message.
    pub(crate) revoked: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Show {
    /// Active keys, and those that were revoked or expired lately.
    #[default]
    Current,
    Active,
    Expired,
    Revoked,
    All,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Sort {
    #[default]
    Newest,
    Name,
    Used,
    Expires,
}

/// A choice of a form: value, text, and whether it is the present one.
pub(crate) type Choice = (&'static str, &'static str, bool);

/// What a filter leaves of all keys.
pub(crate) struct Selection<'a> {
    /// The keys of the page.
    pub(crate) keys: Vec<&'a KeyRecord>,
    /// How many keys fit the filter, on all pages.
    pub(crate) found: usize,
    /// How many more there would be without the choice of the status.
    pub(crate) folded: usize,
    /// The addresses of the pages before and after this one.
    pub(crate) previous: Option<String>,
    pub(crate) next: Option<String>,
    pub(crate) pages: usize,
    pub(crate) page: usize,
}

impl Filter {
    pub(crate) fn query(&self) -> &str {
        &self.q
    }

    /// Whether a form to search and sort is of use.
    pub(crate) fn is_useful(&self, keys: usize) -> bool {
        keys > FEW || !self.q.is_empty() || self.show != Show::Current || self.sort != Sort::Newest
    }

    pub(crate) fn statuses(&self) -> [Choice; 5] {
        let choice = |value, text, show| (value, text, self.show == show);
        [
            choice("current", "Active and recent", Show::Current),
            choice("active", "Active", Show::Active),
            choice("expired", "Expired", Show::Expired),
            choice("revoked", "Revoked", Show::Revoked),
            choice("all", "All", Show::All),
        ]
    }

    pub(crate) fn orders(&self) -> [Choice; 4] {
        let choice = |value, text, sort| (value, text, self.sort == sort);
        [
            choice("newest", "Newest first", Sort::Newest),
            choice("name", "By name", Sort::Name),
            choice("used", "Last used first", Sort::Used),
            choice("expires", "First to expire", Sort::Expires),
        ]
    }

    pub(crate) fn select<'a>(&self, all: &'a [KeyRecord], now: OffsetDateTime) -> Selection<'a> {
        let fitting: Vec<_> = all.iter().filter(|key| self.is_found(key)).collect();
        let mut shown: Vec<_> = fitting.iter().copied().filter(|key| self.shows(key, now)).collect();
        match self.sort {
            // As they come from the register, the oldest first.
            Sort::Newest => shown.reverse(),
            Sort::Name => shown.sort_by_cached_key(|key| key.name.to_lowercase()),
            Sort::Used => shown.sort_by_key(|key| Reverse(key.last_used_at)),
            // Keys without an end come last.
            Sort::Expires => shown.sort_by_key(|key| (key.expires_at.is_none(), key.expires_at)),
        }
        let pages = shown.len().div_ceil(PAGE).max(1);
        let page = self.page.clamp(1, pages);
        Selection {
            found: shown.len(),
            folded: fitting.len() - shown.len(),
            previous: (page > 1).then(|| self.link(page - 1)),
            next: (page < pages).then(|| self.link(page + 1)),
            keys: shown.into_iter().skip((page - 1) * PAGE).take(PAGE).collect(),
            pages,
            page,
        }
    }

    fn is_found(&self, key: &KeyRecord) -> bool {
        let wanted = self.q.trim().to_lowercase();
        key.name.to_lowercase().contains(&wanted) || self.q.trim().ends_with(&key.hint)
    }

    fn shows(&self, key: &KeyRecord, now: OffsetDateTime) -> bool {
        match (self.show, key.status(now)) {
            (Show::All, _) => true,
            (Show::Current | Show::Active, KeyStatus::Active | KeyStatus::ActiveUntil(_)) => true,
            (Show::Current, KeyStatus::Expired(at) | KeyStatus::Revoked(at)) => at > now - RECENT,
            (show, KeyStatus::Expired(_)) => show == Show::Expired,
            (show, KeyStatus::Revoked(_)) => show == Show::Revoked,
            (_, KeyStatus::Active | KeyStatus::ActiveUntil(_)) => false,
        }
    }

    /// The address of another page of the same search.
    fn link(&self, page: usize) -> String {
        let chosen =
            |choices: &[Choice]| choices.iter().find(|(.., is_chosen)| *is_chosen).map_or("", |(value, ..)| value);
        format!(
            "/settings/api-keys?q={}&show={}&sort={}&page={page}",
            utf8_percent_encode(&self.q, NON_ALPHANUMERIC),
            chosen(&self.statuses()),
            chosen(&self.orders())
        )
    }
}

#[cfg(test)]
mod tests {
    use intake_domain::KeyId;
    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2025-12-03 10:30 UTC);

    fn key(number: u8, name: &str, revoked_days_ago: Option<i64>) -> KeyRecord {
        let created_at = datetime!(2025-01-01 0:00 UTC) + Duration::days(number.into());
        KeyRecord {
            id: KeyId::new(created_at, [number; 10]),
            name: name.to_owned(),
            hint: format!("aB{number:02}"),
            created_at,
            last_used_at: None,
            expires_at: (number == 2).then_some(NOW + Duration::DAY),
            created_by: None,
            revoked_at: revoked_days_ago.map(|days| NOW - Duration::days(days)),
            revoked_by: None,
            replaces: None,
            sent_in_clear_at: None,
        }
    }

    fn names<'a>(filter: &Filter, keys: &'a [KeyRecord]) -> Vec<&'a str> {
        filter.select(keys, NOW).keys.iter().map(|key| key.name.as_str()).collect()
    }

    #[test]
    fn keys_that_were_revoked_long_ago_are_folded_away_and_can_be_found() {
        let keys = [key(1, "Old", Some(30)), key(2, "booking", None), key(3, "App", Some(1))];
        let filter = Filter::default();
        assert_eq!(names(&filter, &keys), ["App", "booking"]);
        assert_eq!(filter.select(&keys, NOW).folded, 1);
        assert_eq!(
            names(&Filter { show: Show::All, sort: Sort::Name, ..Filter::default() }, &keys),
            ["App", "booking", "Old"]
        );
        assert_eq!(names(&Filter { show: Show::Revoked, ..Filter::default() }, &keys), ["App", "Old"]);
        assert_eq!(names(&Filter { show: Show::All, sort: Sort::Expires, ..Filter::default() }, &keys)[0], "booking");
        for (search, found) in [("BOOK", vec!["booking"]), ("…aB03", vec!["App"]), ("x", vec![])] {
            assert_eq!(names(&Filter { q: search.to_owned(), ..Filter::default() }, &keys), found, "{search}");
        }
    }

    #[test]
    fn pages_are_full_but_for_the_last_and_keep_the_search() {
        let keys: Vec<_> = (0..120).map(|number| key(number, "a&b", None)).collect();
        let at = |page| Filter { q: "a&b".to_owned(), page, ..Filter::default() }.select(&keys, NOW).keys.len();
        assert_eq!([0, 1, 2, 3, 9].map(at), [50, 50, 50, 20, 20]);
        let second = Filter { q: "a&b".to_owned(), page: 2, ..Filter::default() };
        let selection = second.select(&keys, NOW);
        assert_eq!(selection.next.as_deref(), Some("/settings/api-keys?q=a%26b&show=current&sort=newest&page=3"));
        assert!(selection.previous.is_some_and(|link| link.ends_with("page=1")));
    }
}
