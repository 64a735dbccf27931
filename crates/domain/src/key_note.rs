//! What people write down about a key: who runs the integration, and whom to call before revoking it.

use crate::keys::api_key::contains_key;
use crate::name::{GARBLING, NO_KEY, has_garbling_characters};
use crate::text::is_blank;

/// A note of some lines, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyNote(String);

impl KeyNote {
    /// A paragraph: what is longer belongs into the clinic's own records.
    pub const MAX_CHARACTERS: usize = 500;

    /// Accepts the text, with the line breaks of forms (CR LF) as LF; a blank one is no note.
    pub fn new(text: &str) -> Result<Self, KeyNoteError> {
        let text = text.replace("\r\n", "\n");
        if text.chars().count() > Self::MAX_CHARACTERS {
            return Err(KeyNoteError::Length);
        }
        if text.split('\n').any(has_garbling_characters) {
            return Err(KeyNoteError::Characters);
        }
        if contains_key(&text) {
            return Err(KeyNoteError::ApiKey);
        }
        Ok(Self(if is_blank(&text) { String::new() } else { text }))
    }

    /// The text, empty if there is no note.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Reason why a text cannot be a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum KeyNoteError {
    /// Too long.
    #[error("must be at most {} characters long", KeyNote::MAX_CHARACTERS)]
    Length,
    /// It holds characters that would garble a page.
    #[error("{GARBLING}")]
    Characters,
    /// It contains an API key, which nobody may read.
    #[error("{NO_KEY}")]
    ApiKey,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_keeps_its_lines_and_a_blank_one_is_none() {
        assert_eq!(
            KeyNote::new(" Run by Acme.\r\nCall 5550 first.").unwrap().as_str(),
            " Run by Acme.\nCall 5550 first."
        );
        for blank in ["", "  ", "\r\n", "\u{200B}\n"] {
            assert_eq!(KeyNote::new(blank), Ok(KeyNote::default()), "{blank:?}");
        }
    }

    #[test]
    fn a_note_that_is_too_long_or_garbles_a_page_is_refused() {
        assert!(KeyNote::new(&"é".repeat(500)).is_ok());
        assert!(KeyNote::new(&"\r\n".repeat(500)).is_ok());
        assert_eq!(KeyNote::new(&"é".repeat(501)), Err(KeyNoteError::Length));
        for garbled in ["a\0b", "a\rb", "a\tb", "a\u{202E}b", "a\u{2028}b", "a\u{2029}b"] {
            assert_eq!(KeyNote::new(garbled), Err(KeyNoteError::Characters), "{garbled:?}");
        }
    }
}
