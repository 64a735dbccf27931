//! What people write down about a key: a note, and whom to call about the key.

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
        check(&text, Self::MAX_CHARACTERS)?;
        if text.split('\n').any(has_garbling_characters) {
            return Err(KeyNoteError::Characters);
        }
        Ok(Self(if is_blank(&text) { String::new() } else { text }))
    }

    /// The text, empty if there is no note.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The company or person to call about a key, with a number or an address, in one line. Or nobody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyContact(String);

impl KeyContact {
    /// Room for a company, a person, a phone number and an email address, in a line that a list can show.
    pub const MAX_CHARACTERS: usize = 150;

    /// Accepts the text unchanged; a blank one is no contact.
    pub fn new(text: &str) -> Result<Self, KeyNoteError> {
        check(text, Self::MAX_CHARACTERS)?;
        if has_garbling_characters(text) {
            return Err(KeyNoteError::Characters);
        }
        Ok(Self(if is_blank(text) { String::new() } else { text.to_owned() }))
    }

    /// The text, empty if nobody is named.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check(text: &str, characters_max: usize) -> Result<(), KeyNoteError> {
    if text.chars().count() > characters_max {
        return Err(KeyNoteError::Length(characters_max));
    }
    if contains_key(text) { Err(KeyNoteError::ApiKey) } else { Ok(()) }
}

/// Reason why a text cannot be a note or a contact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum KeyNoteError {
    /// Too long.
    #[error("must be at most {0} characters long")]
    Length(usize),
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
        assert_eq!(KeyNote::new(&"é".repeat(501)), Err(KeyNoteError::Length(500)));
        for garbled in ["a\0b", "a\rb", "a\tb", "a\u{202E}b", "a\u{2028}b", "a\u{2029}b"] {
            assert_eq!(KeyNote::new(garbled), Err(KeyNoteError::Characters), "{garbled:?}");
        }
    }

    #[test]
    fn a_contact_is_one_line_and_a_blank_one_is_nobody() {
        let contact = "Acme Bookings, Zoë, 02 5550 1234, help@acme.example";
        assert_eq!(KeyContact::new(contact).unwrap().as_str(), contact);
        for blank in ["", "  ", "\u{200B}"] {
            assert_eq!(KeyContact::new(blank), Ok(KeyContact::default()), "{blank:?}");
        }
        assert!(KeyContact::new(&"é".repeat(150)).is_ok());
        assert_eq!(KeyContact::new(&"é".repeat(151)), Err(KeyNoteError::Length(150)));
        for garbled in ["a\nb", "a\r\nb", "a\tb", "a\u{202E}b", "a\u{2028}b"] {
            assert_eq!(KeyContact::new(garbled), Err(KeyNoteError::Characters), "{garbled:?}");
        }
    }
}
