//! Which keys the list shows, and in which order, as the address of the page says. The pages of one key carry the same
//! in their addresses, so that a change there leads back to where it was begun.

use actix_web::HttpResponse;
use intake_domain::{KeyId, KeyOrder, KeyPage, KeyScope, KeySearch, MemberId};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use time::{Duration, OffsetDateTime};

use crate::api_keys::show::{Show, ShowLink};
use crate::page::notice::redirect_with_notice;

/// The longest time without a use that can be asked for: ten years.
const UNUSED_MAX: u16 = 3_650;
/// Message about a text that is no number of days.
const NO_NUMBER: &str = "Enter a number of days from 1 to 3650.";
/// Fewer keys than this need neither search nor order.
const FEW: u64 = 10;

/// The search, status, order and page that were asked for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Filter {
    q: String,
    show: Show,
    /// Minimum of unused days, as typed; empty means any.
    unused: String,
    sort: Sort,
    /// The member who made the keys; empty or no id: anyone.
    made_by: String,
    page: u32,
    /// The page on which an action began, and to which it leads back.
    at: Place,
}

/// A page on which something can be done to a key.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Place {
    #[default]
    List,
    Key,
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

/// Texts of the list beside its keys.
pub(crate) struct Selection {
    /// Number of keys that fit the filter, on all pages.
    pub(crate) found: u64,
    /// Those of them that ended lately, which no status counts.
    pub(crate) ended: u64,
    /// Number of further keys without the choice of the status.
    pub(crate) folded: u64,
    /// Links to the keys of each status, and to those that need attention.
    pub(crate) statuses: Vec<ShowLink>,
    pub(crate) reasons: Vec<ShowLink>,
    /// The addresses of the pages before and after this one.
    pub(crate) previous: Option<String>,
    pub(crate) next: Option<String>,
    pub(crate) pages: u32,
    pub(crate) page: u32,
}

impl Filter {
    pub(crate) fn search(&self) -> &str {
        &self.q
    }

    /// The value of the choice, unless it is the usual one.
    pub(crate) fn shown(&self) -> Option<&'static str> {
        (self.show != Show::Current).then(|| self.show.value())
    }

    /// The days without a use, as typed.
    pub(crate) fn unused(&self) -> &str {
        &self.unused
    }

    /// Returns what is wrong with the days.
    pub(crate) fn unused_error(&self) -> Option<&'static str> {
        (!self.unused.trim().is_empty() && self.unused_days().is_none()).then_some(NO_NUMBER)
    }

    /// The member who made the keys, if it matters.
    pub(crate) fn made_by(&self) -> Option<MemberId> {
        self.made_by.parse().ok()
    }

    fn unused_days(&self) -> Option<u16> {
        self.unused.trim().parse().ok().filter(|days| (1..=UNUSED_MAX).contains(days))
    }

    /// Returns whether a form to search and sort is of use.
    pub(crate) fn is_useful(&self, keys: u64) -> bool {
        keys > FEW
            || !self.q.is_empty()
            || !self.unused.is_empty()
            || self.made_by().is_some()
            || self.show != Show::Current
            || self.sort != Sort::Newest
    }

    /// Returns whether the search is for keys that may have no use.
    pub(crate) fn finds_unused(&self) -> bool {
        matches!(self.show, Show::Unused | Show::Silent) || self.unused_days().is_some()
    }

    pub(crate) fn orders(&self) -> [Choice; 4] {
        let choice = |value, text, sort| (value, text, self.order() == sort);
        [
            choice("newest", "Newest first", Sort::Newest),
            choice("name", "By name", Sort::Name),
            choice("used", "Recently used", Sort::Used),
            choice("expires", "Expiring soonest", Sort::Expires),
        ]
    }

    /// The order that was chosen. Of keys that expire, those that do so first come first.
    fn order(&self) -> Sort {
        if self.show == Show::Expiring && self.sort == Sort::Newest { Sort::Expires } else { self.sort }
    }

    /// Returns what the register is asked for.
    pub(crate) fn search_at(&self, now: OffsetDateTime) -> KeySearch {
        let order = match self.order() {
            Sort::Newest => KeyOrder::Newest,
            Sort::Name => KeyOrder::Name,
            Sort::Used => KeyOrder::Used,
            Sort::Expires => KeyOrder::Expires,
        };
        let unused_since = self.unused_days().map(|days| now - Duration::days(days.into()));
        let (text, scope, made_by) = (self.q.clone(), self.show.scope(), self.made_by());
        KeySearch { text, scope, unused_since, made_by, order, page: self.page }
    }

    pub(crate) fn selection(&self, found: &KeyPage) -> Selection {
        let (page, pages) = (found.page, found.pages());
        let statuses = self.show.statuses(found, |show| Self { show, page: 0, ..self.clone() }.list());
        let counted = statuses.iter().find(|status| status.is_chosen).map_or(found.found, |status| status.count);
        Selection {
            found: found.found,
            ended: found.found.saturating_sub(counted),
            folded: found.count(KeyScope::All).saturating_sub(found.found),
            statuses,
            reasons: self.show.reasons(found, |show| Self { show, ..Self::default() }.list()),
            previous: (page > 1).then(|| self.link_to(page - 1)),
            next: (page < pages).then(|| self.link_to(page + 1)),
            pages,
            page,
        }
    }

    /// Query parameters of this filter, without defaults.
    pub(crate) fn fields(&self) -> Vec<(&'static str, String)> {
        let sort = self.orders().into_iter().find(|(.., is_chosen)| *is_chosen && self.sort != Sort::Newest);
        let page = (self.page > 1).then(|| self.page.to_string());
        let fields = [
            ("q", Some(self.q.clone()).filter(|q| !q.is_empty())),
            ("show", self.shown().map(str::to_owned)),
            ("unused", Some(self.unused.clone()).filter(|days| !days.is_empty())),
            ("sort", sort.map(|(value, ..)| value.to_owned())),
            ("made_by", self.made_by().map(|member| member.to_string())),
            ("page", page),
            ("at", (self.at == Place::Key).then(|| "key".to_owned())),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// The filter as a query string: empty, or starting with `?`.
    pub(crate) fn query(&self) -> String {
        let fields = self.fields().into_iter();
        let pairs = fields.map(|(name, value)| format!("{name}={}", utf8_percent_encode(&value, NON_ALPHANUMERIC)));
        let pairs: Vec<_> = pairs.collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    }

    /// The same search, for what is begun on the page of a key.
    pub(crate) fn on_key_page(self) -> Self {
        Self { at: Place::Key, ..self }
    }

    /// The address of the list with this search.
    pub(crate) fn list(&self) -> String {
        format!("/settings/api-keys{}", Self { at: Place::List, ..self.clone() }.query())
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

    /// Redirects there, with a notice that says what was done.
    pub(crate) fn back_with_notice(&self, key: KeyId, notice: &str) -> HttpResponse {
        redirect_with_notice(&self.back(key), notice)
    }

    /// The address of another page of the same search.
    fn link_to(&self, page: u32) -> String {
        Self { page, ..self.clone() }.list()
    }
}

#[cfg(test)]
mod tests {
    use intake_domain::KeyId;
    use time::macros::datetime;

    use super::*;

    #[test]
    fn pages_keep_the_search() {
        let in_scope = [(KeyScope::Current, 120), (KeyScope::Active, 120), (KeyScope::Ended, 30), (KeyScope::All, 130)];
        let in_scope = in_scope.into_iter().chain([(KeyScope::Expiring, 1), (KeyScope::NeverUsed, 9)]).collect();
        let found = KeyPage { keys: Vec::new(), page: 2, found: 120, in_scope, total: 200, is_any_used: false };
        let second = Filter { q: "a&b".to_owned(), page: 2, ..Filter::default() };
        let selection = second.selection(&found);
        assert_eq!((selection.pages, selection.folded), (3, 10));
        assert_eq!(selection.next.as_deref(), Some("/settings/api-keys?q=a%26b&page=3"));
        assert_eq!(selection.previous.as_deref(), Some("/settings/api-keys?q=a%26b"));
        let shown = |links: &[ShowLink]| {
            links.iter().map(|link| format!("{} {} {}", link.count, link.words, link.link)).collect::<Vec<_>>()
        };
        let statuses = ["120 Current /settings/api-keys?q=a%26b", "30 Ended /settings/api-keys?q=a%26b&show=ended"];
        assert_eq!(shown(&selection.statuses), statuses, "all current keys are active");
        let reasons =
            ["1 expires within a week /settings/api-keys?show=expiring", "9 never used /settings/api-keys?show=unused"];
        assert_eq!(shown(&selection.reasons), reasons);
        assert_eq!(second.selection(&KeyPage { page: 3, ..found }).next, None);
    }

    #[test]
    fn keys_that_expire_soonest_are_first_among_those_that_expire() {
        let search = |filter: &Filter| filter.search_at(datetime!(2025-01-01 0:00 UTC)).order;
        let expiring = Filter { show: Show::Expiring, ..Filter::default() };
        assert_eq!(search(&expiring), KeyOrder::Expires);
        assert_eq!(search(&Filter { sort: Sort::Name, ..expiring }), KeyOrder::Name);
        assert_eq!(search(&Filter::default()), KeyOrder::Newest);
    }

    #[test]
    fn a_change_leads_back_to_where_it_was_begun() {
        let id = KeyId::new(datetime!(2025-01-01 0:00 UTC), [1; 10]);
        let filter = Filter { q: "a&b".to_owned(), show: Show::All, page: 2, ..Filter::default() };
        assert_eq!(filter.back(id), "/settings/api-keys?q=a%26b&show=all&page=2");
        let on_page = filter.on_key_page();
        assert_eq!(on_page.query(), "?q=a%26b&show=all&page=2&at=key");
        assert_eq!(on_page.back(id), format!("/settings/api-keys/{id}?q=a%26b&show=all&page=2"));
        assert_eq!(on_page.list(), "/settings/api-keys?q=a%26b&show=all&page=2");
    }
}
