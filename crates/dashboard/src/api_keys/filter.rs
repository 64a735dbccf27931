//! Which keys the list shows, and in which order, as the address of the page says. The pages of one key carry the same in
//! their addresses, so that whoever does something there comes back to where it was begun.

use std::cmp::Reverse;

use intake_domain::{KeyId, KeyRecord, KeyStatus};
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
    /// The page that a deed was begun on, to which it leads back.
    at: Place,
    /// What was just done, to be told in a message.
    pub(crate) done: Done,
    /// The key that it was done to.
    pub(crate) key: String,
}

/// A page on which something can be done to a key.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Place {
    #[default]
    List,
    Key,
}

/// What was just done to a key. It is told only of keys that the visitor's organisation has.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Done {
    #[default]
    Nothing,
    /// It was revoked.
    Revoked,
    /// It has another name.
    Renamed,
    /// There is another note about it.
    Noted,
    /// It was to be changed, and is revoked.
    KeptAsRevoked,
    /// It was to be replaced, and is no longer active.
    NotReplaced,
    /// It was to be made by a form that had been sent before.
    MadeBefore,
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
    pub(crate) fn search(&self) -> &str {
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
            previous: (page > 1).then(|| self.link_to(page - 1)),
            next: (page < pages).then(|| self.link_to(page + 1)),
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

    /// The names and values by which an address says what is searched for, as far as that is not the usual.
    pub(crate) fn fields(&self) -> Vec<(&'static str, String)> {
        let chosen = |choices: &[Choice]| choices.iter().find(|(.., is_chosen)| *is_chosen).map(|(value, ..)| *value);
        let show = chosen(&self.statuses()).filter(|_| self.show != Show::Current);
        let sort = chosen(&self.orders()).filter(|_| self.sort != Sort::Newest);
        let page = (self.page > 1).then(|| self.page.to_string());
        let fields = [
            ("q", Some(self.q.clone()).filter(|q| !q.is_empty())),
            ("show", show.map(str::to_owned)),
            ("sort", sort.map(str::to_owned)),
            ("page", page),
            ("at", (self.at == Place::Key).then(|| "key".to_owned())),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// The same as the end of an address: empty, or with its question mark.
    pub(crate) fn query(&self) -> String {
        let fields = self.fields().into_iter();
        let pairs = fields.map(|(name, value)| format!("{name}={}", utf8_percent_encode(&value, NON_ALPHANUMERIC)));
        let pairs: Vec<_> = pairs.collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    }

    /// The same search, for what is begun on the page of a key.
    pub(crate) fn on_key_page(self) -> Self {
        Self { at: Place::Key, done: Done::Nothing, key: String::new(), ..self }
    }

    /// The address of the list with this search.
    pub(crate) fn list(&self) -> String {
        let list = Self { q: self.q.clone(), show: self.show, sort: self.sort, page: self.page, ..Self::default() };
        format!("/settings/api-keys{}", list.query())
    }

    /// The address of the page that something was begun on.
    pub(crate) fn back(&self, key: KeyId) -> String {
        match self.at {
            Place::List => self.list(),
            Place::Key => {
                let list = self.list();
                let query = list.split_once('?').map_or(String::new(), |(_, query)| format!("?{query}"));
                format!("/settings/api-keys/{key}{query}")
            }
        }
    }

    /// The same, with a message that tells what was done.
    pub(crate) fn back_after(&self, done: Done, key: KeyId) -> String {
        let back = self.back(key);
        let separator = if back.contains('?') { '&' } else { '?' };
        format!("{back}{separator}done={}&key={key}", done.as_str())
    }

    /// The address of another page of the same search.
    fn link_to(&self, page: usize) -> String {
        Self { q: self.q.clone(), show: self.show, sort: self.sort, page, ..Self::default() }.list()
    }
}

impl Done {
    fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Revoked => "revoked",
            Self::Renamed => "renamed",
            Self::Noted => "noted",
            Self::KeptAsRevoked => "kept-as-revoked",
            Self::NotReplaced => "not-replaced",
            Self::MadeBefore => "made-before",
        }
    }

    /// What is told of it, with the name of the key.
    pub(crate) fn message(self, key: &KeyRecord) -> Option<String> {
        let name = &key.name;
        match self {
            Self::Revoked if key.revoked_at.is_some() => {
                Some(format!("“{name}” is revoked. Every request with it is refused from now on."))
            }
            Self::Renamed => Some(format!("The key is called “{name}” from now on.")),
            Self::Noted => Some(format!("The note about “{name}” is saved.")),
            Self::KeptAsRevoked => Some(format!("“{name}” is revoked: its name and note stay as they are.")),
            Self::NotReplaced => {
                Some(format!("“{name}” is no longer active, so nothing can replace it. Create a new key instead."))
            }
            Self::MadeBefore => Some(format!("“{name}” was made before, and shown then. It cannot be shown again.")),
            Self::Nothing | Self::Revoked => None,
        }
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
            note: String::new(),
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
        assert_eq!(selection.next.as_deref(), Some("/settings/api-keys?q=a%26b&page=3"));
        assert_eq!(selection.previous.as_deref(), Some("/settings/api-keys?q=a%26b"));
    }

    #[test]
    fn a_deed_leads_back_to_where_it_was_begun_and_says_what_was_done() {
        let id = key(1, "Booking", None).id;
        let filter = Filter { q: "a&b".to_owned(), show: Show::All, page: 2, ..Filter::default() };
        assert_eq!(filter.back(id), "/settings/api-keys?q=a%26b&show=all&page=2");
        let expected = format!("/settings/api-keys?q=a%26b&show=all&page=2&done=revoked&key={id}");
        assert_eq!(filter.back_after(Done::Revoked, id), expected);
        let on_page = filter.on_key_page();
        assert_eq!(on_page.query(), "?q=a%26b&show=all&page=2&at=key");
        assert_eq!(on_page.back(id), format!("/settings/api-keys/{id}?q=a%26b&show=all&page=2"));
        assert_eq!(on_page.list(), "/settings/api-keys?q=a%26b&show=all&page=2");
        let plain = Filter::default().on_key_page();
        assert_eq!(
            plain.back_after(Done::NotReplaced, id),
            format!("/settings/api-keys/{id}?done=not-replaced&key={id}")
        );
    }

    #[test]
    fn nobody_is_told_that_a_key_was_revoked_which_was_not() {
        assert_eq!(Done::Revoked.message(&key(1, "Booking", None)), None);
        assert!(
            Done::Revoked
                .message(&key(1, "Booking", Some(0)))
                .is_some_and(|text| text.contains("“Booking” is revoked"))
        );
    }
}
