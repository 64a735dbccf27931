//! The rule of every patient field, as custom rules for garde: its own length, email and pattern rules count or accept
//! differently. A rule gives the first thing wrong, in the order present, type, length, characters, format. It never
//! changes a value and its message never repeats one.

use garde::Error;
use time::macros::date;
use time::{Date, Month};

use crate::patients::draft::Sent;

/// Earlier birthdays are typing errors: nobody alive was born before.
const EARLIEST_BIRTH: Date = date!(1850 - 01 - 01);
/// The longest address that can be delivered to (RFC 5321).
pub(crate) const EMAIL_MAX: usize = 254;
/// The longest label of a host name (RFC 1035).
const DOMAIN_LABEL_MAX: usize = 63;

pub(crate) const FORBIDDEN_CHARACTERS: &str = "must not contain control characters or bidirectional overrides";

/// What a date of birth is measured against.
#[derive(Clone, Copy, Debug)]
pub struct Today(pub(crate) Date);

type Result<T = ()> = std::result::Result<T, Error>;

pub(crate) fn person_name(sent: &Sent<'_>, _: &Today) -> Result {
    let text = required(sent)?;
    length(text, 1, 255)?;
    // Before the characters, so that a name of tabs alone is called what it is.
    if is_blank(text) {
        return Err(Error::new("must not be blank"));
    }
    characters(text)
}

pub(crate) fn phone_number(sent: &Sent<'_>, _: &Today) -> Result {
    let digits = required(sent)?.strip_prefix('+').map(str::as_bytes);
    match digits {
        Some([b'1'..=b'9', rest @ ..]) if (1..=14).contains(&rest.len()) && rest.iter().all(u8::is_ascii_digit) => {
            Ok(())
        }
        _ => Err(Error::new("E.164 format is required, for example +61412345678")),
    }
}

pub(crate) fn date_of_birth(sent: &Sent<'_>, today: &Today) -> Result {
    let text = required(sent)?;
    let Some((year, month, day)) = year_month_day(text) else {
        return Err(Error::new("must be a date in the form YYYY-MM-DD, for example 1985-03-21"));
    };
    let Some(date) = calendar_date(year, month, day) else {
        return Err(Error::new("must be a day that exists in the calendar"));
    };
    if date < EARLIEST_BIRTH {
        return Err(Error::new("must not be before 1850-01-01"));
    }
    if date > today.0 {
        return Err(Error::new("must not be in the future"));
    }
    Ok(())
}

pub(crate) fn email(sent: &Sent<'_>, _: &Today) -> Result {
    let Some(text) = optional(sent)? else {
        return Ok(());
    };
    length(text, 1, EMAIL_MAX)?;
    characters(text)?;
    if is_email_address(text) { Ok(()) } else { Err(Error::new("must be a valid email address")) }
}

pub(crate) fn at_most(max: usize) -> impl FnOnce(&Sent<'_>, &Today) -> Result {
    move |sent, _| match optional(sent)? {
        Some(text) => length(text, 0, max).and_then(|()| characters(text)),
        None => Ok(()),
    }
}

pub(crate) fn country(sent: &Sent<'_>, _: &Today) -> Result {
    match optional(sent)? {
        None | Some("AU") => Ok(()),
        Some(_) => Err(Error::new("must be AU")),
    }
}

/// A date in the form `YYYY-MM-DD` that exists in the calendar.
pub(crate) fn parse_date(text: &str) -> Option<Date> {
    let (year, month, day) = year_month_day(text)?;
    calendar_date(year, month, day)
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

fn required<'a>(sent: &'a Sent<'_>) -> Result<&'a str> {
    optional(sent)?.ok_or_else(|| Error::new("is required"))
}

fn optional<'a>(sent: &'a Sent<'_>) -> Result<Option<&'a str>> {
    match sent {
        Sent::Nothing => Ok(None),
        Sent::NotText => Err(Error::new("must be a string")),
        Sent::Text(text) => Ok(Some(text)),
    }
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
        Error::new(format_args!("must be at most {max} characters long"))
    } else {
        Error::new(format_args!("must be {min} to {max} characters long"))
    })
}

fn characters(text: &str) -> Result {
    if has_forbidden_characters(text) { Err(Error::new(FORBIDDEN_CHARACTERS)) } else { Ok(()) }
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
