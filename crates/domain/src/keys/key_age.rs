//! The longest time for which an organisation lets its keys work.

use std::fmt;

use time::{Duration, OffsetDateTime};

/// The most days for which a key may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAge(u16);

impl KeyAge {
    /// Ten years: a longer limit is none.
    pub const DAYS_MAX: u16 = 3_650;

    /// None: no days, or more than [`Self::DAYS_MAX`].
    #[must_use]
    pub fn of_days(days: u16) -> Option<Self> {
        (1..=Self::DAYS_MAX).contains(&days).then_some(Self(days))
    }

    /// The number of days.
    #[must_use]
    pub fn days(self) -> u16 {
        self.0
    }

    /// Returns whether a key may have this end. The last day counts to its end, wherever the maker of the key is, even
    /// where clocks are put back before it.
    #[must_use]
    pub fn allows(self, created_at: OffsetDateTime, expires_at: Option<OffsetDateTime>) -> bool {
        let latest = created_at + Duration::days(self.0.into()) + Duration::DAY + Duration::HOUR;
        expires_at.is_some_and(|at| at <= latest)
    }
}

impl fmt::Display for KeyAge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&days_in_words(self.0.into()))
    }
}

/// A number of days as people say it, such as "1 day".
#[must_use]
pub fn days_in_words(days: i64) -> String {
    if days == 1 { "1 day".to_owned() } else { format!("{days} days") }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn the_last_day_counts_to_its_end_wherever_people_are() {
        let age = KeyAge::of_days(30).unwrap();
        let made = datetime!(2026-03-01 23:30 UTC);
        // Half an hour after midnight in Sydney, before the end of daylight saving.
        let in_sydney = datetime!(2026-03-16 0:30 +11);
        assert!(age.allows(in_sydney, Some(datetime!(2026-04-16 0:00 +10))));
        assert!(age.allows(made, Some(datetime!(2026-04-01 0:00 UTC))));
        assert!(age.allows(made, Some(datetime!(2026-04-01 0:00 -12))));
        assert!(!age.allows(made, Some(datetime!(2026-04-02 1:00 UTC))));
        assert!(!age.allows(made, None));
        assert_eq!([0, 1, 3_650, 3_651].map(|days| KeyAge::of_days(days).is_some()), [false, true, true, false]);
        assert_eq!((age.to_string(), KeyAge(1).to_string()), ("30 days".to_owned(), "1 day".to_owned()));
    }
}
