//! Which keys the list shows: those with a status, or those that need attention for one reason. Each choice is a link
//! with its number of keys.

use intake_domain::{KeyPage, KeyScope};
use serde::Deserialize;

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Show {
    /// Keys that are not over, and those that were revoked or expired lately.
    #[default]
    Current,
    Active,
    Suspended,
    Paused,
    #[serde(alias = "expired", alias = "revoked")]
    Ended,
    All,
    /// Keys that expired lately and have no replacement.
    Lapsed,
    Expiring,
    Refused,
    Unused,
    Silent,
}

/// A link to a part of the keys.
pub(crate) struct ShowLink {
    pub(crate) show: Show,
    pub(crate) count: u64,
    pub(crate) words: &'static str,
    pub(crate) link: String,
    pub(crate) is_chosen: bool,
}

impl Show {
    /// Statuses that have a link.
    const STATUSES: [Self; 5] = [Self::Current, Self::Active, Self::Paused, Self::Suspended, Self::Ended];
    /// Reasons why keys need attention.
    const REASONS: [Self; 5] = [Self::Lapsed, Self::Expiring, Self::Refused, Self::Unused, Self::Silent];

    /// Links to statuses that have keys, but not to one that leads to the very keys of the usual list.
    pub(crate) fn statuses(self, page: &KeyPage, link: impl Fn(Self) -> String) -> Vec<ShowLink> {
        let current = Self::Current.count(page);
        let is_other = |show: &Self| ![0, current].contains(&page.count(show.scope()));
        let shown = Self::STATUSES.into_iter().filter(|show| *show == Self::Current || *show == self || is_other(show));
        shown.map(|show| self.link_to(show, page, &link)).collect()
    }

    /// Links to keys that need attention.
    pub(crate) fn reasons(self, page: &KeyPage, link: impl Fn(Self) -> String) -> Vec<ShowLink> {
        let links = Self::REASONS.into_iter().map(|show| self.link_to(show, page, &link));
        links.filter(|link| link.count > 0 || link.is_chosen).collect()
    }

    /// Number of its keys. Those that ended lately are shown with the current ones and are none of them.
    fn count(self, page: &KeyPage) -> u64 {
        match self {
            Self::Current => {
                [Self::Active, Self::Suspended, Self::Paused].map(|show| page.count(show.scope())).iter().sum()
            }
            show => page.count(show.scope()),
        }
    }

    fn link_to(self, show: Self, page: &KeyPage, link: impl Fn(Self) -> String) -> ShowLink {
        let count = show.count(page);
        ShowLink { show, count, words: show.words(count), link: link(show), is_chosen: show == self }
    }

    /// The value in an address.
    pub(crate) fn value(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Active => "active",
            Self::Suspended => "suspended",
            Self::Paused => "paused",
            Self::Ended => "ended",
            Self::All => "all",
            Self::Lapsed => "lapsed",
            Self::Expiring => "expiring",
            Self::Refused => "refused",
            Self::Unused => "unused",
            Self::Silent => "silent",
        }
    }

    /// Returns what is looked for.
    pub(crate) fn scope(self) -> KeyScope {
        match self {
            Self::Current => KeyScope::Current,
            Self::Active => KeyScope::Active,
            Self::Suspended => KeyScope::Suspended,
            Self::Paused => KeyScope::Paused,
            Self::Ended => KeyScope::Ended,
            Self::All => KeyScope::All,
            Self::Lapsed => KeyScope::Lapsed,
            Self::Expiring => KeyScope::Expiring,
            Self::Refused => KeyScope::OnlyRefused,
            Self::Unused => KeyScope::NeverUsed,
            Self::Silent => KeyScope::Silent,
        }
    }

    /// Words beside the number of keys.
    fn words(self, count: u64) -> &'static str {
        match (self, count) {
            (Self::Current, _) => "Current",
            (Self::Active, _) => "Active",
            (Self::Suspended, _) => "Suspended",
            (Self::Paused, _) => "Paused",
            (Self::Ended, _) => "Ended",
            (Self::All, _) => "All",
            (Self::Lapsed, _) => "expired this week",
            (Self::Expiring, 1) => "expires within a week",
            (Self::Expiring, _) => "expire within a week",
            (Self::Refused, 1) => "only gets refusals",
            (Self::Refused, _) => "only get refusals",
            (Self::Unused, _) => "never used",
            (Self::Silent, _) => "silent",
        }
    }
}
