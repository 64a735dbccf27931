//! How a value is checked. Which rule a field has, with its limits and the message of a form, stands in `field.rs`. A
//! check returns the first rule that is broken, in the order required, type, length, forbidden characters, blank,
//! format. It never changes a value.

use std::fmt;

use time::{Date, Duration, Month, OffsetDateTime, UtcOffset};

use crate::patients::fault::FaultKind;
use crate::patients::sent::Sent;
use crate::text::{has_forbidden_characters, is_blank, is_email_address};

/// The first place on earth to see a new day is 14 hours ahead of UTC: a newborn there is not "in the future".
const EARLIEST_TODAY: Duration = Duration::hours(14);

/// Rule for a value: as data, so that the validator and every document are made of the same line.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Rule {
    /// A person's name: not empty, not blank.
    Name {
        /// The most code points.
        max: usize,
    },
    /// Any text, the empty one too.
    Text {
        /// The most code points.
        max: usize,
    },
    /// An address in the syntax of HTML5 with a dot in the domain.
    Email {
        /// The most characters.
        max: usize,
    },
    /// A text of one form.
    Pattern {
        /// The form, in words.
        form: &'static str,
        /// The form, as a regular expression of ECMA 262.
        pattern: &'static str,
        /// True if a text has the form.
        matches: fn(&str) -> bool,
        /// Fault of a text that has not.
        fault: FaultKind,
    },
    /// A day of the calendar, `YYYY-MM-DD`, up to today.
    BirthDate {
        /// The first day that is accepted, `YYYY-MM-DD`.
        earliest: &'static str,
    },
    /// One of these values.
    OneOf(&'static [&'static str]),
}

impl fmt::Display for Rule {
    /// The rule in words, as documents tell it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { max } => write!(f, "1 to {max} characters, not blank"),
            Self::Text { max } => write!(f, "at most {max} characters"),
            Self::Email { max } => {
                write!(
                    f,
                    "an address that an HTML email field accepts, with a dot in the domain, at most {max} characters"
                )
            }
            Self::Pattern { form, .. } => f.write_str(form),
            Self::BirthDate { earliest } => {
                write!(f, "`YYYY-MM-DD`, a real date, from {earliest} to today (in UTC+14, where the day starts first)")
            }
            Self::OneOf(values) => write!(f, "`{}`", values.join("`, `")),
        }
    }
}

/// The day that a date of birth is measured against: today, where on earth it begins first.
///
/// ```
/// use intake_domain::{Field, PatientDraft, Today};
///
/// let newborn = PatientDraft::default()
///     .with(Field::FirstName, "Ada")
///     .with(Field::LastName, "Lovelace")
///     .with(Field::PhoneNumber, "+61412345678")
///     .with(Field::DateOfBirth, "2025-12-04");
/// // 10:30 UTC on 3 December 2025: in Sydney nearly, and on Kiritimati already, the next day.
/// assert!(newborn.clone().validate(Today::from_unix_seconds(1_764_757_800)).is_ok());
/// assert!(newborn.validate(Today::new(2025, 12, 3).unwrap()).is_err());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Today(Date);

impl Today {
    /// The day that has begun somewhere at this moment, in seconds since 1970 in UTC. The register decides so.
    #[must_use]
    pub fn from_unix_seconds(seconds: i64) -> Self {
        let moment = OffsetDateTime::from_unix_timestamp(seconds);
        let end = if seconds < 0 { Date::MIN } else { Date::MAX };
        moment.map_or(Self(end), Self::from)
    }

    /// A day of the calendar as it is; none if there is no such day. A clock in UTC or in Sydney is behind the
    /// register's day for some hours, in which newborns would be refused: use [`Today::from_unix_seconds`] for now.
    #[must_use]
    pub fn new(year: u16, month: u8, day: u8) -> Option<Self> {
        calendar_date(year, month, day).map(Self)
    }
}

impl From<OffsetDateTime> for Today {
    /// The day that has begun somewhere at this moment.
    fn from(now: OffsetDateTime) -> Self {
        Self(now.to_offset(UtcOffset::UTC).saturating_add(EARLIEST_TODAY).date())
    }
}

type Result<T = ()> = std::result::Result<T, FaultKind>;

/// Applies a rule. Gives the day, where the value is one.
pub(crate) fn check(rule: Rule, is_required: bool, sent: &Sent<'_>, today: Today) -> Result<Option<Date>> {
    let text = match sent {
        Sent::Nothing if is_required => return Err(FaultKind::Missing),
        Sent::Nothing => return Ok(None),
        Sent::NotText => return Err(FaultKind::NotText),
        Sent::Text(text) => text,
    };
    length(text, rule)?;
    if has_forbidden_characters(text) {
        return Err(FaultKind::ForbiddenCharacters);
    }
    match rule {
        Rule::Name { .. } | Rule::Email { .. } | Rule::OneOf(_) if is_blank(text) => {
            Err(if is_required { FaultKind::Blank } else { FaultKind::BlankOptional })
        }
        Rule::Email { .. } if !is_email_address(text) => Err(FaultKind::NotAnEmailAddress),
        Rule::Pattern { matches, fault, .. } if !matches(text) => Err(fault),
        Rule::OneOf(values) if !values.contains(&text.as_ref()) => Err(FaultKind::NotOneOf(values)),
        Rule::BirthDate { earliest } => date_of_birth(text, earliest, today).map(Some),
        Rule::Name { .. } | Rule::Text { .. } | Rule::Email { .. } | Rule::Pattern { .. } | Rule::OneOf(_) => Ok(None),
    }
}

/// A plus sign, a digit from 1 to 9, then 1 to 14 digits.
pub(crate) fn is_e164(text: &str) -> bool {
    match text.as_bytes() {
        [b'+', b'1'..=b'9', rest @ ..] => (1..=14).contains(&rest.len()) && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

fn date_of_birth(text: &str, earliest: &'static str, today: Today) -> Result<Date> {
    let (year, month, day) = year_month_day(text).ok_or(FaultKind::NotADate)?;
    let date = calendar_date(year, month, day).ok_or(FaultKind::NoSuchDay)?;
    // Days in this form are ordered like their texts.
    if text < earliest {
        return Err(FaultKind::TooEarly { earliest });
    }
    if date > today.0 {
        return Err(FaultKind::InTheFuture);
    }
    Ok(date)
}

/// Counts code points, of the value as sent. A form says itself how long it is.
fn length(text: &str, rule: Rule) -> Result {
    let (min, max, fault) = match rule {
        Rule::Name { max } => (1, max, FaultKind::Length { max }),
        // An empty address is blank, which has a remedy of its own.
        Rule::Email { max } => (0, max, FaultKind::Length { max }),
        Rule::Text { max } => (0, max, FaultKind::TooLong { max }),
        Rule::Pattern { .. } | Rule::BirthDate { .. } | Rule::OneOf(_) => return Ok(()),
    };
    // A text has at most as many code points as bytes: short texts, nearly all there are, need no count.
    if (min..=max).contains(&text.len()) || (min..=max).contains(&text.chars().count()) {
        return Ok(());
    }
    Err(fault)
}

pub(crate) fn year_month_day(text: &str) -> Option<(u16, u8, u8)> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text.as_bytes() else {
        return None;
    };
    let two =
        |tens: u8, ones: u8| (tens.is_ascii_digit() && ones.is_ascii_digit()).then(|| (tens - b'0') * 10 + ones - b'0');
    let year = u16::from(two(y1, y2)?) * 100 + u16::from(two(y3, y4)?);
    Some((year, two(m1, m2)?, two(d1, d2)?))
}

pub(crate) fn calendar_date(year: u16, month: u8, day: u8) -> Option<Date> {
    Date::from_calendar_date(i32::from(year), Month::try_from(month).ok()?, day).ok()
}
