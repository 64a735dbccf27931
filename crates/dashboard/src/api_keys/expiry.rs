//! How long a key lasts, as chosen in a form: a number of days, up to a day, or without an end. A day counts to its end
//! in the time zone of the organisation.

use intake_domain::{KeyAge, KeyRecord, SignedIn, Zone, days_in_words};
use serde::Deserialize;
use time::{Date, Duration, OffsetDateTime};

use crate::page::day;
use crate::page::draft::Draft;

/// A year, so that a key which everybody has forgotten ends by itself.
const USUAL: i64 = 365;
/// Numbers of days that are offered.
const NUMBERS: [i64; 3] = [30, 90, USUAL];

/// Choice of the form.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Expiry {
    /// A number of days, `date`, `same` or `never`. Empty: a date if there is one, else never.
    #[serde(default)]
    lasts: String,
    /// The last day, where `lasts` is `date`.
    #[serde(default)]
    expires: String,
}

/// The part of a form that asks for it.
pub(crate) struct ExpiryFields {
    pub(crate) choices: Vec<ExpiryChoice>,
    pub(crate) date: String,
    pub(crate) date_type: &'static str,
    /// The longest time that the organisation allows, and the last day that the date control offers.
    pub(crate) limit: Option<(KeyAge, Date)>,
    pub(crate) error: Option<String>,
}

/// A choice of when a key expires.
pub(crate) struct ExpiryChoice {
    pub(crate) value: String,
    pub(crate) text: String,
    pub(crate) last_day: Option<String>,
    pub(crate) is_chosen: bool,
}

impl Expiry {
    /// Returns what was chosen before the form could be sent.
    pub(crate) fn of_draft(draft: &Draft) -> Self {
        Self { lasts: draft.field("lasts"), expires: draft.field("expires") }
    }

    /// Returns when a key made now ends. None: never.
    pub(crate) fn end(
        &self,
        now: OffsetDateTime,
        old: Option<&KeyRecord>,
        visitor: &SignedIn,
    ) -> Result<Option<OffsetDateTime>, String> {
        let end = self.chosen_end(now, old, visitor.zone)?;
        match visitor.key_age_max {
            Some(age) if !age.allows(now, end) => Err(format!("Keys of your organisation must expire within {age}.")),
            _ => Ok(end),
        }
    }

    fn chosen_end(
        &self,
        now: OffsetDateTime,
        old: Option<&KeyRecord>,
        zone: Zone,
    ) -> Result<Option<OffsetDateTime>, &'static str> {
        let today = zone.day(now);
        if !self.expires.is_empty() && !["", "date"].contains(&self.lasts.as_str()) {
            return Err("Choose “On a date” to use this date, or clear it.");
        }
        let last_day = match self.lasts.as_str() {
            "never" => return Ok(None),
            "date" => self.date()?,
            "" if self.expires.is_empty() => return Ok(None),
            "" => self.date()?,
            "same" => match old.and_then(|old| old.days(zone)) {
                Some(days) => today.saturating_add(Duration::days(days)),
                None => return Ok(None),
            },
            days => {
                let days = days.parse::<u16>().map_err(|_| "Choose how long the key works.")?;
                today.saturating_add(Duration::days(days.into()))
            }
        };
        let end = zone.start_of(last_day.saturating_add(Duration::DAY));
        if end > now { Ok(Some(end)) } else { Err("The date must not be in the past.") }
    }

    fn date(&self) -> Result<Date, &'static str> {
        day::parse(&self.expires).ok_or(day::NO_DAY)
    }

    /// The fields of the form, with what was chosen.
    pub(crate) fn fields(
        &self,
        old: Option<&KeyRecord>,
        visitor: &SignedIn,
        error: Option<String>,
        now: OffsetDateTime,
    ) -> ExpiryFields {
        let (age, today) = (visitor.key_age_max, visitor.zone.day(now));
        let longest = age.map(|age| i64::from(age.days()));
        let is_allowed = |days: i64| longest.is_none_or(|longest| days <= longest);
        let same = old.and_then(|old| old.days(visitor.zone)).filter(|days| is_allowed(*days));
        let mut numbers: Vec<i64> = NUMBERS.into_iter().filter(|days| is_allowed(*days)).collect();
        numbers.extend(longest.filter(|days| !numbers.contains(days)));
        let working = old.filter(|old| !old.is_over(now));
        let usual_choice = match (working, same, longest) {
            (Some(_), Some(_), _) => "same".to_owned(),
            (Some(_), None, None) => "never".to_owned(),
            (Some(_), None, Some(longest)) => longest.to_string(),
            (None, _, longest) => longest.map_or(USUAL, |longest| longest.min(USUAL)).to_string(),
        };
        let chosen = if self.lasts.is_empty() { &usual_choice } else { &self.lasts };
        let choice = |value: &str, text: String, days: Option<i64>| ExpiryChoice {
            value: value.to_owned(),
            text,
            last_day: days.map(|days| day::in_words(today.saturating_add(Duration::days(days)))),
            is_chosen: value == chosen,
        };
        let text = |days: i64| format!("{}, as before", days_in_words(days));
        let same = same.map(|days| choice("same", text(days), Some(days)));
        let numbers = numbers
            .iter()
            .map(|days| choice(&days.to_string(), format!("After {}", days_in_words(*days)), Some(*days)));
        let never = age.is_none().then(|| choice("never", "Never".to_owned(), None));
        let date = choice("date", "On a date".to_owned(), None);
        let choices = same.into_iter().chain(numbers).chain([date]).chain(never).collect();
        let limit = age.map(|age| (age, today.saturating_add(Duration::days(age.days().into()))));
        ExpiryFields { choices, date: self.expires.clone(), date_type: day::field_type(&self.expires), limit, error }
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-03-01 23:30 UTC);

    fn chosen(lasts: &str, expires: &str, zone: &str) -> Result<Option<OffsetDateTime>, &'static str> {
        let expiry = Expiry { lasts: lasts.to_owned(), expires: expires.to_owned() };
        expiry.chosen_end(NOW, None, zone.parse().unwrap())
    }

    #[test]
    fn a_day_counts_to_its_end_in_the_zone() {
        assert_eq!(chosen("date", "2026-03-02", "UTC").unwrap(), Some(datetime!(2026-03-03 0:00 UTC)));
        // In Sydney, eleven hours ahead, the second has begun.
        assert_eq!(chosen("date", "2026-03-02", "Australia/Sydney").unwrap(), Some(datetime!(2026-03-02 13:00 UTC)));
        assert!(chosen("date", "2026-03-01", "Australia/Sydney").is_err());
        assert_eq!(chosen("date", "2026-03-01", "America/Los_Angeles").unwrap(), Some(datetime!(2026-03-02 8:00 UTC)));
    }

    #[test]
    fn a_number_of_days_is_counted_from_today() {
        assert_eq!(chosen("30", "", "UTC").unwrap(), Some(datetime!(2026-04-01 0:00 UTC)));
        assert_eq!(chosen("30", "", "Australia/Sydney").unwrap(), Some(datetime!(2026-04-01 13:00 UTC)));
        assert_eq!(
            chosen("90", "", "Australia/Sydney").unwrap(),
            Some(datetime!(2026-05-31 14:00 UTC)),
            "after the end of daylight saving"
        );
        assert_eq!(chosen("never", "", "UTC").unwrap(), None);
    }

    #[test]
    fn a_date_beside_another_choice_is_never_ignored() {
        for lasts in ["30", "365", "same", "never"] {
            assert!(chosen(lasts, "2026-03-05", "UTC").is_err(), "{lasts}");
            assert!(chosen(lasts, "nonsense", "UTC").is_err(), "{lasts}");
        }
        assert_eq!(chosen("date", "5/3/2026", "UTC").unwrap(), Some(datetime!(2026-03-06 0:00 UTC)));
    }

    #[test]
    fn nothing_chosen_is_never_and_nonsense_is_refused() {
        assert_eq!(chosen("", "", "UTC").unwrap(), None);
        assert_eq!(chosen("", "2026-03-05", "UTC").unwrap(), Some(datetime!(2026-03-06 0:00 UTC)));
        for (lasts, date) in [("date", ""), ("date", "5.3.2026"), ("soon", ""), ("-1", ""), ("date", "2020-01-01")] {
            assert!(chosen(lasts, date, "UTC").is_err(), "{lasts} {date}");
        }
        assert!(chosen("65535", "", "UTC").is_ok());
    }
}
