//! Errors in the JSON of a patient: the place, and the cause where it is a common one. The JSON itself is never
//! repeated.

use std::fmt;

use crate::patients::fault::FaultKind;

/// A name that a message repeats is no longer than this.
const NAME_SHOWN_MAX: usize = 64;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
const OTHER_QUOTES: [&str; 8] = ["'", "“", "”", "„", "‘", "’", "«", "»"];

/// Reason why bytes are not the JSON of a patient, whatever the fields are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonError {
    /// The bytes are no JSON, from this place on.
    Malformed {
        /// The first line is 1.
        line: usize,
        /// In bytes; the first column is 1.
        column: usize,
        /// The cause, if it is a common one.
        cause: Option<JsonCause>,
    },
    /// One property was sent twice.
    Repeated {
        /// The property's name, quoted as in JSON, and cut where it is long.
        name: String,
    },
    /// The bytes are JSON, and no object.
    NotAnObject,
}

/// Common reason why bytes are no JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonCause {
    /// There is nothing but white space.
    Empty,
    /// A byte order mark of UTF-8 comes first.
    ByteOrderMark,
    /// The bytes are of another encoding, such as Windows-1252 or UTF-16.
    NotUtf8,
    /// A text holds a line break, a tab or another control character that is not escaped.
    ControlCharacter,
    /// Single or typographic quotes stand in place of double quotes.
    OtherQuotes,
}

impl JsonError {
    /// Returns what is wrong, without its subject, which the API calls the body.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Malformed { line, column, cause: None } => {
                format!("is not valid JSON: error at line {line} column {column}")
            }
            Self::Malformed { line, column, cause: Some(cause) } => {
                format!("is not valid JSON, because it {cause}: error at line {line} column {column}")
            }
            Self::Repeated { name } => format!("contains the property {name} twice"),
            Self::NotAnObject => FaultKind::NotAnObject.to_string(),
        }
    }

    /// The error of a decoder, with its cause.
    pub(super) fn malformed(json: &[u8], error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column().max(1));
        Self::Malformed { line, column, cause: cause(json, place(json, line, column)) }
    }

    /// An error at this place.
    pub(super) fn malformed_at(json: &[u8], place: usize, cause: Option<JsonCause>) -> Self {
        let before = json.get(..place).unwrap_or(json);
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|&&byte| byte != b'\n').count();
        Self::Malformed { line, column, cause }
    }
}

impl fmt::Display for JsonCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "is empty",
            Self::ByteOrderMark => "begins with a byte order mark",
            Self::NotUtf8 => "is not in UTF-8",
            Self::ControlCharacter => "has a line break or another control character inside a text",
            Self::OtherQuotes => "has single or typographic quotes in place of double quotes",
        })
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the patient {}", self.message())
    }
}

impl std::error::Error for JsonError {}

/// A property's name, escaped as in JSON and not longer than a line.
pub(super) fn shown(name: &str) -> String {
    let cut: String = name.chars().take(NAME_SHOWN_MAX).collect();
    let quoted = serde_json::to_string(&cut).unwrap_or_default();
    if cut.len() < name.len() { format!("{quoted}…") } else { quoted }
}

/// The cause of an error at this place, in JSON that is good up to there.
fn cause(json: &[u8], place: usize) -> Option<JsonCause> {
    if json.trim_ascii().is_empty() {
        return Some(JsonCause::Empty);
    }
    if json.starts_with(BYTE_ORDER_MARK) {
        return Some(JsonCause::ByteOrderMark);
    }
    // UTF-16 without a mark: every other byte of ASCII text is 0.
    if matches!(json, [0, ..] | [_, 0, ..]) {
        return Some(JsonCause::NotUtf8);
    }
    let rest = json.get(place..).unwrap_or_default();
    if OTHER_QUOTES.iter().any(|quote| rest.starts_with(quote.as_bytes())) {
        return Some(JsonCause::OtherQuotes);
    }
    // A decoder may stop before the character or after it.
    control_character_in_text(json).filter(|found| found.abs_diff(place) <= 1).map(|_| JsonCause::ControlCharacter)
}

/// The place of a line and a column, in bytes from the beginning.
fn place(json: &[u8], line: usize, column: usize) -> usize {
    let before: usize = json.split(|&byte| byte == b'\n').take(line - 1).map(|line| line.len() + 1).sum();
    before + column - 1
}

fn control_character_in_text(json: &[u8]) -> Option<usize> {
    let (mut is_in_text, mut is_escaped) = (false, false);
    json.iter().position(|&byte| {
        let is_quote = byte == b'"' && !is_escaped;
        is_escaped = is_in_text && byte == b'\\' && !is_escaped;
        is_in_text ^= is_quote;
        is_in_text && byte < b' '
    })
}
