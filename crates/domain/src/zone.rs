//! The time zone in which the members of an organisation see days and times. The rules of all zones are compiled in, so
//! that they are there on every machine.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{self, TimeZone};
use time::{Date, OffsetDateTime, UtcOffset};

static UTC: TimeZone = TimeZone::UTC;

static ALL: LazyLock<Vec<TimeZone>> =
    LazyLock::new(|| tz::db().available().filter_map(|name| TimeZone::get(name.as_str()).ok()).collect());

/// The zones of the capitals of states and territories, by the number of people who live by them.
const CAPITALS: [&str; 7] = [
    "Australia/Sydney",
    "Australia/Melbourne",
    "Australia/Brisbane",
    "Australia/Perth",
    "Australia/Adelaide",
    "Australia/Hobart",
    "Australia/Darwin",
];

/// A zone of the tz database. UTC is the default.
#[derive(Clone, Copy)]
pub struct Zone(&'static TimeZone);

impl Zone {
    /// The zones that people choose from, without other names of these: those of Australia first, its capitals
    /// before them, then all others by name.
    #[must_use]
    pub fn choices() -> Vec<Self> {
        let mut choices: Vec<_> =
            ALL.iter().map(Self).filter(|zone| zone.0.is_primary() && zone.place().is_some()).collect();
        choices.sort_by_key(|zone| (!zone.is_australian(), zone.capital(), zone.name()));
        choices
    }

    /// The name in the tz database, such as `Australia/Sydney`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// The place that the zone is named after, such as "Sydney". None: it has another kind of name.
    #[must_use]
    pub fn place(self) -> Option<String> {
        let (_, place) = self.name().rsplit_once('/').filter(|_| self.0.location().is_some())?;
        Some(place.replace('_', " "))
    }

    /// Returns whether it is a zone of Australia.
    #[must_use]
    pub fn is_australian(self) -> bool {
        self.0.location().is_some_and(|location| location.country() == "AU")
    }

    /// The place of an Australian capital in the list. A zone of none comes after all of them.
    fn capital(self) -> usize {
        CAPITALS.iter().position(|capital| *capital == self.name()).unwrap_or(CAPITALS.len())
    }

    /// The moment on the clocks of the zone.
    #[must_use]
    pub fn local(self, at: OffsetDateTime) -> OffsetDateTime {
        let moment = Timestamp::from_second(at.unix_timestamp());
        let seconds = moment.map_or(0, |moment| self.0.to_offset(moment).seconds());
        at.to_offset(UtcOffset::from_whole_seconds(seconds).unwrap_or(UtcOffset::UTC))
    }

    /// The day of a moment.
    #[must_use]
    pub fn day(self, at: OffsetDateTime) -> Date {
        self.local(at).date()
    }

    /// The first moment of a day, which is not midnight where clocks are put forward then.
    #[must_use]
    pub fn start_of(self, day: Date) -> OffsetDateTime {
        let utc = day.midnight().assume_utc();
        let moment = civil(day).and_then(|midnight| self.0.to_timestamp(midnight).ok());
        let moment = moment.and_then(|moment| OffsetDateTime::from_unix_timestamp(moment.as_second()).ok());
        moment.unwrap_or(utc)
    }
}

fn civil(day: Date) -> Option<DateTime> {
    let (year, month, day) = (i16::try_from(day.year()).ok()?, u8::from(day.month()), day.day());
    DateTime::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?, 0, 0, 0, 0).ok()
}

impl Default for Zone {
    fn default() -> Self {
        Self(&UTC)
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Zone {}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name())
    }
}

/// As people name it: "Sydney time", or "UTC".
impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place() {
            Some(place) => write!(f, "{place} time"),
            None => f.write_str(self.name()),
        }
    }
}

impl FromStr for Zone {
    type Err = UnknownZone;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let is_named = |zone: &Self| zone.name().eq_ignore_ascii_case(name);
        std::iter::once(Self::default()).chain(ALL.iter().map(Self)).find(is_named).ok_or(UnknownZone)
    }
}

/// Reason why a text is not the name of a time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a name of the tz database, such as Australia/Sydney")]
pub struct UnknownZone;

#[cfg(test)]
mod tests {
    use time::macros::{date, datetime};

    use super::*;

    fn zone(name: &str) -> Zone {
        name.parse().unwrap()
    }

    #[test]
    fn days_begin_and_end_with_the_clocks_of_the_zone() {
        for (name, day, start) in [
            ("UTC", date!(2026 - 03 - 02), datetime!(2026-03-02 0:00 UTC)),
            ("Australia/Sydney", date!(2026 - 03 - 02), datetime!(2026-03-01 13:00 UTC)),
            ("Australia/Sydney", date!(2026 - 07 - 02), datetime!(2026-07-01 14:00 UTC)),
            ("Australia/Adelaide", date!(2026 - 07 - 02), datetime!(2026-07-01 14:30 UTC)),
            ("Australia/Perth", date!(2026 - 01 - 01), datetime!(2025-12-31 16:00 UTC)),
            ("Australia/Lord_Howe", date!(2026 - 01 - 02), datetime!(2026-01-01 13:00 UTC)),
            ("America/New_York", date!(2026 - 01 - 02), datetime!(2026-01-02 5:00 UTC)),
            ("Africa/Cairo", date!(2026 - 04 - 24), datetime!(2026-04-23 22:00 UTC)),
        ] {
            let zone = zone(name);
            assert_eq!(zone.start_of(day), start, "{name}");
            assert_eq!(zone.day(start), day, "{name}");
            assert_eq!(zone.day(start - time::Duration::SECOND), day.previous_day().unwrap(), "{name}");
        }
        let cairo = zone("Africa/Cairo").local(datetime!(2026-04-23 22:00 UTC));
        assert_eq!(cairo.hour(), 1, "clocks were put forward at midnight");
    }

    #[test]
    fn a_day_of_daylight_saving_has_23_or_25_hours() {
        let sydney = zone("Australia/Sydney");
        let hours = |day: Date| (sydney.start_of(day.next_day().unwrap()) - sydney.start_of(day)).whole_hours();
        assert_eq!([date!(2026 - 10 - 03), date!(2026 - 10 - 04), date!(2026 - 04 - 05)].map(hours), [24, 23, 25]);
    }

    #[test]
    fn the_choices_begin_with_australia_and_each_is_found_by_its_name() {
        let choices = Zone::choices();
        let (australian, others) = choices.split_at(choices.partition_point(|zone| zone.is_australian()));
        let names: Vec<_> = australian.iter().map(|zone| zone.name()).collect();
        for name in ["Adelaide", "Brisbane", "Darwin", "Hobart", "Lord_Howe", "Melbourne", "Perth", "Sydney"] {
            assert!(names.contains(&format!("Australia/{name}").as_str()), "{name}: {names:?}");
        }
        assert_eq!(names[..CAPITALS.len()], CAPITALS);
        assert!(!names.contains(&"Australia/NSW"), "another name of Sydney");
        assert!(others.len() > 250 && others.is_sorted_by_key(|zone| zone.name()), "{}", others.len());
        assert!(choices.iter().all(|choice| choice.name().parse() == Ok(*choice)));
    }

    #[test]
    fn zones_are_named_in_words() {
        for (name, words) in [
            ("Australia/Sydney", "Sydney time"),
            ("america/argentina/buenos_aires", "Buenos Aires time"),
            ("Australia/Broken_Hill", "Broken Hill time"),
            ("utc", "UTC"),
            ("Etc/GMT-10", "Etc/GMT-10"),
        ] {
            assert_eq!(zone(name).to_string(), words);
        }
        for nonsense in ["", "Sydney", "Australia/Springfield", "Australia/Sydney "] {
            assert_eq!(nonsense.parse::<Zone>(), Err(UnknownZone), "{nonsense}");
        }
    }
}
