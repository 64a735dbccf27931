//! Signs in the bytes of a text that a value may be wrong. Each create looks for all of them: the common case is
//! decided by a few bytes, and the rest is rarely reached.

use crate::conversions::{is_placeholder, is_title};

/// Names and local parts of addresses that stand for none.
const MADE_UP: [&str; 12] = [".", "..", "x", "xx", "xxx", "test", "testing", "tbc", "tba", "patient", "noemail", "no"];
const PLACEHOLDER_BYTES_MAX: usize = 9;
const QUOTES: [char; 9] = ['"', '\'', '“', '”', '„', '‘', '’', '«', '»'];
/// Kinds of ASCII characters in a name.
pub(super) const CAPITAL: u8 = 1;
pub(super) const SMALL: u8 = 2;
pub(super) const DIGIT: u8 = 4;
pub(super) const SPACE: u8 = 8;
/// Signs of a note, such as brackets.
pub(super) const NOTE: u8 = 16;
/// First of two bytes that are a letter beyond ASCII, of no width but its own: neither a space nor a quote.
const LEAD: u8 = 32;
const KINDS: [u8; 256] = kinds();

/// The kinds of each byte.
#[expect(clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "the index is less than the length")]
const fn kinds() -> [u8; 256] {
    let (mut kinds, mut byte) = ([0; 256], 0);
    while byte < kinds.len() {
        kinds[byte] = match byte as u8 {
            b'A'..=b'Z' => CAPITAL,
            b'a'..=b'z' => SMALL,
            b'0'..=b'9' => DIGIT,
            b' ' => SPACE,
            b'(' | b')' | b'[' | b']' | b'&' | b';' | b':' | b'?' | b'*' => NOTE,
            0xC3..=0xDF => LEAD,
            _ => 0,
        };
        byte += 1;
    }
    kinds
}

fn kinds_of_byte(byte: u8) -> u8 {
    KINDS.get(usize::from(byte)).copied().unwrap_or_default()
}

/// The kinds of all bytes of a text: several doubts look at each, and one loop serves them.
pub(super) fn kinds_of(text: &[u8]) -> u8 {
    text.iter().fold(0, |kinds, byte| kinds | kinds_of_byte(*byte))
}

/// Returns whether a text begins and ends with a letter or digit, as nearly every text does. Then nothing encloses it.
pub(super) fn has_plain_ends(text: &[u8]) -> bool {
    const PLAIN: u8 = CAPITAL | SMALL | DIGIT;
    match text {
        [first, .., before, last] => {
            kinds_of_byte(*first) & (PLAIN | LEAD) != 0
                && (kinds_of_byte(*last) & PLAIN != 0 || kinds_of_byte(*before) & LEAD != 0)
        }
        _ => text.iter().all(|byte| kinds_of_byte(*byte) & PLAIN != 0),
    }
}

/// Returns whether a text is the code of a state or territory, or the one for places outside of them.
pub(super) fn is_state(text: &[u8]) -> bool {
    matches!(text, b"ACT" | b"NSW" | b"NT" | b"OTHER" | b"QLD" | b"SA" | b"TAS" | b"VIC" | b"WA")
}

pub(super) fn is_postcode(text: &[u8]) -> bool {
    matches!(text, [b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9'])
}

/// Returns whether a text is a placeholder. Nearly every text is too long for one, or begins and ends otherwise.
pub(super) fn stands_for_none(text: &[u8]) -> bool {
    if text.len() > PLACEHOLDER_BYTES_MAX {
        return false;
    }
    let ends_so = match text {
        [first, .., last] => matches!(
            (first | 0x20, last | 0x20),
            (b'n', b'a' | b'e' | b'l' | b'o')
                | (b'p', b't')
                | (b't', b'a' | b'c' | b'g' | b't')
                | (b'u', b'n')
                | (b'x', b'x')
        ),
        [only] => only | 0x20 == b'x',
        [] => false,
    };
    (ends_so || !has_plain_ends(text)) && is_made_up(text)
}

#[cold]
fn is_made_up(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    MADE_UP.iter().any(|word| word.as_bytes().eq_ignore_ascii_case(text))
        || str::from_utf8(text).is_ok_and(is_placeholder)
}

pub(super) fn is_made_up_address(address: &[u8]) -> bool {
    address.ends_with(b"@example.com") || address.split(|byte| *byte == b'@').next().is_some_and(stands_for_none)
}

pub(super) fn has_outer_spaces(text: &[u8]) -> bool {
    !has_plain_ends(text) && str::from_utf8(text).is_ok_and(|text| text.trim().len() < text.len())
}

#[cold]
pub(super) fn is_quoted(name: &str) -> bool {
    name.chars().count() > 1 && name.trim().starts_with(QUOTES) && name.trim().ends_with(QUOTES)
}

#[cold]
pub(super) fn begins_with_title(name: &str) -> bool {
    name.split(' ').next().is_some_and(is_title)
}

/// Returns whether a name of at least two letters has capitals alone, or none. Letters of many scripts are neither.
#[cold]
pub(super) fn is_in_one_case(name: &str) -> bool {
    let capitals = name.chars().filter(|letter| letter.is_uppercase()).count();
    let others = name.chars().filter(|letter| letter.is_lowercase()).count();
    capitals + others > 1 && (capitals == 0 || others == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_placeholder_is_found_in_any_case_with_and_without_spaces() {
        let known = ["-", "--", "–", "—", "n/a", "na", "nil", "none", "null", "unknown"];
        for word in known.into_iter().chain(MADE_UP) {
            for text in [word.to_owned(), word.to_uppercase(), format!(" {word}"), format!("{word}\u{a0}")] {
                let is_name = text.trim() == "na";
                let is_spaced = text.ends_with('\u{a0}') && MADE_UP.contains(&word);
                assert_eq!(stands_for_none(text.as_bytes()), !is_name && !is_spaced, "{text:?}");
            }
        }
        for other in ["Ng", "Nina", "Nguyễn", "Tara", "Xander", "Pat", "Unit 12", "Una", "12"] {
            assert!(!stands_for_none(other.as_bytes()), "{other}");
        }
    }
}
