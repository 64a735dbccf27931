//! How a value is checked. Which rule a field has, with its limits and the message of a form, stands in `field.rs`. A check
//! gives the first thing wrong, in the order present, type, length, characters, format. It never changes a value and its
//! message never repeats one.

use std::borrow::Cow;

use time::{Date, Duration, Month, OffsetDateTime, UtcOffset};

use crate::patients::field::{Definition, Rule};
use crate::patients::sent::Sent;

/// The first place on earth to see a new day is 14 hours ahead of UTC: a newborn there is not "in the future".
const EARLIEST_TODAY: Duration = Duration::hours(14);
/// The longest label of a host name (RFC 1035).
const DOMAIN_LABEL_MAX: usize = 63;

pub(crate) const FORBIDDEN_CHARACTERS: &str = "must not contain control characters or bidirectional overrides";

/// The day that a date of birth is measured against: today, where on earth it begins first.
#[derive(Clone, Copy, Debug)]
pub struct Today(Date);

impl Today {
    /// The day that has begun somewhere at this moment.
    #[must_use]
    pub fn at(now: OffsetDateTime) -> Self {
        Self((now.to_offset(UtcOffset::UTC) + EARLIEST_TODAY).date())
    }
}

/// What is wrong with a value.
type Result<T = ()> = std::result::Result<T, Cow<'static, str>>;

/// Applies the rule of a field. Gives the day, where the value is one.
pub(crate) fn check(field: &Definition, sent: &Sent<'_>, today: Today) -> Result<Option<Date>> {
    let text = match sent {
        Sent::Nothing if field.is_required => return Err("is required".into()),
        Sent::Nothing => return Ok(None),
        Sent::NotText => return Err("must be a string".into()),
        Sent::Text(text) => text,
    };
    match field.rule {
        Rule::Name { max } => person_name(text, max)?,
        Rule::Text { max } => length(text, 0, max).and_then(|()| characters(text))?,
        Rule::Email { max } => email(text, max)?,
        Rule::Pattern { matches, message, .. } if !matches(text) => return Err(message.into()),
        Rule::Pattern { .. } => {}
        Rule::BirthDate { earliest } => return date_of_birth(text, earliest, today).map(Some),
        Rule::OneOf(values) if !values.contains(&text.as_ref()) => {
            return Err(format!("must be {}", values.join(" or ")).into());
        }
        Rule::OneOf(_) => {}
    }
    Ok(None)
}

/// A plus sign, a digit from 1 to 9, then 1 to 14 digits.
pub(crate) fn is_e164(text: &str) -> bool {
    match text.as_bytes() {
        [b'+', b'1'..=b'9', rest @ ..] => (1..=14).contains(&rest.len()) && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

fn person_name(text: &str, max: usize) -> Result {
    length(text, 1, max)?;
    // Before the characters, so that a name of tabs alone is called what it is.
    if is_blank(text) {
        return Err("must not be blank".into());
    }
    characters(text)
}

fn email(text: &str, max: usize) -> Result {
    length(text, 1, max)?;
    characters(text)?;
    if is_email_address(text) { Ok(()) } else { Err("must be a valid email address".into()) }
}

fn date_of_birth(text: &str, earliest: Date, today: Today) -> Result<Date> {
    let Some((year, month, day)) = year_month_day(text) else {
        return Err("must be a date in the form YYYY-MM-DD, for example 1985-03-21".into());
    };
    let Some(date) = calendar_date(year, month, day) else {
        return Err("must be a day that exists in the calendar".into());
    };
    if date < earliest {
        return Err(format!("must not be before {earliest}").into());
    }
    if date > today.0 {
        return Err("must not be in the future".into());
    }
    Ok(date)
}

/// Nothing to see: white space and characters without a width.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_invisible(c))
}

pub(crate) fn has_forbidden_characters(text: &str) -> bool {
    // ASCII text, nearly all there is, is decided byte by byte.
    if text.is_ascii() {
        return text.bytes().any(|byte| byte.is_ascii_control());
    }
    text.chars().any(|c| c.is_control() || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'))
}

/// Counts code points, of the value as sent.
fn length(text: &str, min: usize, max: usize) -> Result {
    // A text has at most as many code points as bytes: short texts, nearly all there are, need no count.
    if text.len() >= min && text.len() <= max {
        return Ok(());
    }
    if (min..=max).contains(&text.chars().count()) {
        return Ok(());
    }
    Err(if min == 0 {
        format!("must be at most {max} characters long").into()
    } else {
        format!("must be {min} to {max} characters long").into()
    })
}

fn characters(text: &str) -> Result {
    if has_forbidden_characters(text) { Err(FORBIDDEN_CHARACTERS.into()) } else { Ok(()) }
}

fn year_month_day(text: &str) -> Option<(u16, u8, u8)> {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text.as_bytes() else {
        return None;
    };
    let two =
        |tens: u8, ones: u8| (tens.is_ascii_digit() && ones.is_ascii_digit()).then(|| (tens - b'0') * 10 + ones - b'0');
    let year = u16::from(two(y1, y2)?) * 100 + u16::from(two(y3, y4)?);
    Some((year, two(m1, m2)?, two(d1, d2)?))
}

fn calendar_date(year: u16, month: u8, day: u8) -> Option<Date> {
    Date::from_calendar_date(i32::from(year), Month::try_from(month).ok()?, day).ok()
}

/// The address syntax of HTML5's email field, with a dot in the domain.
pub(crate) fn is_email_address(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else {
        return false;
    };
    let is_local = |byte: u8| byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&byte);
    !local.is_empty() && local.bytes().all(is_local) && domain.contains('.') && domain.split('.').all(is_domain_label)
}

fn is_domain_label(label: &str) -> bool {
    (1..=DOMAIN_LABEL_MAX).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// Characters that draw nothing: joiners, marks of direction, fillers, variation selectors, tags.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{00AD}'
            | '\u{034F}'
            | '\u{061C}'
            | '\u{115F}'..='\u{1160}'
            | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{FFF9}'..='\u{FFFB}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
}
