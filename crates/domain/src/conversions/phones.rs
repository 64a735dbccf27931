//! Phone numbers as people write them in Australia.

use crate::conversions::Conversion;
use crate::conversions::texts::trim;
use crate::patients::rules::is_e164;

/// Characters that people put between the digits of a phone number.
const BETWEEN_DIGITS: [char; 9] = [' ', '\u{a0}', '-', '\u{2010}', '\u{2011}', '\u{2013}', '(', ')', '.'];

/// Kinds of phones that stand before a number, or behind it.
const LABELS: [&str; 17] = [
    "m",
    "mob",
    "mobile",
    "cell",
    "p",
    "ph",
    "phone",
    "t",
    "tel",
    "telephone",
    "h",
    "hm",
    "home",
    "w",
    "wk",
    "work",
    "bh",
];
/// Prefix of calls from Australia to another country, or to itself.
const TO_ABROAD: &str = "0011";

/// The number in E.164. Unclear unless it can only be meant as one of Australia, or is international but for spaces and
/// the like. A mobile number may have lost its leading zero, as in a spreadsheet. A label such as `Mob:` or `(m)`,
/// the apostrophe of a spreadsheet, and `0011` in place of `+` are read. `+44 (0)20 …` is unclear: whether the zero is
/// dialled depends on the country.
#[must_use]
pub fn phone_number(text: &str) -> Conversion {
    // After +61 a zero is for calls from within the country, and nobody can dial it.
    let is_whole = is_e164(text) && !text.starts_with("+610");
    if is_whole { Conversion::Unchanged } else { Conversion::read(text, rewritten(trim(text))) }
}

fn rewritten(text: &str) -> Option<String> {
    let compact: String = text.chars().filter(|character| !BETWEEN_DIGITS.contains(character)).collect();
    let number = compact.strip_prefix('\'').unwrap_or(&compact);
    let number = unlabelled(number);
    let compact = number.strip_prefix(TO_ABROAD).map_or_else(|| number.to_owned(), |number| format!("+{number}"));
    let digits = compact.strip_prefix('+').unwrap_or(&compact);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if compact.starts_with('+') {
        return match digits.strip_prefix("61") {
            // +61 (0) 2 5550 1234: the zero is for calls from within the country.
            Some(national) => australian(national.strip_prefix('0').unwrap_or(national)),
            None => Some(compact).filter(|number| is_e164(number) && !has_zero_in_brackets(text)),
        };
    }
    australian(match digits {
        _ if digits.len() == 9 && digits.starts_with('4') => digits,
        _ if digits.len() == 10 => digits.strip_prefix('0')?,
        _ if digits.len() == 11 => digits.strip_prefix("61")?,
        _ if digits.len() == 13 => digits.strip_prefix("0061")?,
        _ => return None,
    })
}

fn unlabelled(number: &str) -> &str {
    let is_label = |label: &str| LABELS.iter().any(|known| known.eq_ignore_ascii_case(label));
    let is_letter = |character: char| character.is_ascii_alphabetic();
    let (after, before) = (number.trim_start_matches(is_letter), number.trim_end_matches(is_letter));
    if number.strip_suffix(after).is_some_and(is_label) {
        after.strip_prefix(':').unwrap_or(after)
    } else if number.strip_prefix(before).is_some_and(is_label) {
        before
    } else {
        number
    }
}

fn has_zero_in_brackets(text: &str) -> bool {
    text.split('(').skip(1).any(|after| after.trim_start().starts_with('0'))
}

/// A national number of an area (2, 3, 7, 8) or a mobile (4, 5).
fn australian(national: &str) -> Option<String> {
    let is_whole = national.len() == 9 && national.starts_with(['2', '3', '4', '5', '7', '8']);
    is_whole.then(|| format!("+61{national}"))
}
