//! Spaces and quotes round a value, and words that stand for no value.

use crate::conversions::Conversion;
use crate::text::{is_blank, is_email_address};

const QUOTES: [(char, char); 6] = [('"', '"'), ('“', '”'), ('„', '“'), ('‘', '’'), ('«', '»'), ('\'', '\'')];
const PLACEHOLDERS: [&str; 10] = ["-", "--", "–", "—", "n/a", "na", "nil", "none", "null", "unknown"];

/// The value without spaces and invisible characters at its ends.
#[must_use]
pub fn trimmed(text: &str) -> Conversion {
    Conversion::compared(text, trim(text).to_owned())
}

/// The value without the quotes that enclose the whole of it, and without spaces at its ends.
#[must_use]
pub fn unquoted(text: &str) -> Conversion {
    let inner = QUOTES.iter().find_map(|(open, close)| trim(text).strip_prefix(*open)?.strip_suffix(*close));
    match inner {
        Some(inner) if !inner.contains(['"', '“', '”', '„', '«', '»']) && !is_blank(inner) => {
            Conversion::compared(text, trim(inner).to_owned())
        }
        Some(_) => Conversion::Unclear,
        None => trimmed(text),
    }
}

/// The address without spaces at its ends, its typographic apostrophes as they are typed on a keyboard.
#[must_use]
pub fn email(text: &str) -> Conversion {
    let address = trim(text).replace(['’', '‘'], "'");
    Conversion::read(text, is_email_address(&address).then_some(address))
}

/// Returns whether the value stands for none: nothing to see, or a word such as `N/A`, `-` or `unknown`. `Na` is also
/// a name: only `NA` in capitals stands for none.
#[must_use]
pub fn is_placeholder(text: &str) -> bool {
    let text = trim(text);
    let is_word = || PLACEHOLDERS.iter().any(|word| word.eq_ignore_ascii_case(text));
    is_blank(text) || (text != "Na" && text != "na" && is_word())
}

pub(super) fn trim(text: &str) -> &str {
    let ends = [text.as_bytes().first(), text.as_bytes().last()];
    if ends.iter().all(|end| end.is_some_and(u8::is_ascii_graphic)) {
        return text;
    }
    text.trim_matches(|character: char| is_blank(character.encode_utf8(&mut [0; 4])))
}
