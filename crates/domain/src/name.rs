//! Names of organisations, keys and members.

use std::fmt;

use crate::keys::api_key::contains_key;
use crate::text::{has_forbidden_characters, is_blank};

/// Message about a name or a note that has forbidden characters or a line separator.
pub(crate) const GARBLING: &str = "must not contain control characters, line separators or bidirectional overrides";

/// Returns whether a page, a mail or a log would show the text as something else than one line.
pub(crate) fn has_garbling_characters(text: &str) -> bool {
    has_forbidden_characters(text) || text.contains(['\u{2028}', '\u{2029}'])
}

/// A name for people to read: 1 to 100 characters, not blank, free of control characters, line separators and
/// bidirectional overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    /// Long enough for any title, short enough for a table's column.
    pub const MAX_CHARACTERS: usize = 100;

    /// Accepts a text that was typed, unchanged, or refuses it.
    pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
        let name = Self::stored(text)?;
        if has_garbling_characters(&name.0) {
            return Err(NameError::Characters);
        }
        if contains_key(&name.0) { Err(NameError::ApiKey) } else { Ok(name) }
    }

    /// The name that a member chooses: none under which the audit log would show someone else.
    pub fn of_member(text: impl Into<String>) -> Result<Self, NameError> {
        let name = Self::new(text)?;
        let is_word = |word: &str| word.to_lowercase() == "operator";
        let is_reserved = name.0.split(|c: char| !c.is_alphanumeric()).any(is_word)
            || ["operator", "anoperator", "someone", "somebody", "system"].contains(&name.folded().as_str());
        if is_reserved { Err(NameError::Reserved) } else { Ok(name) }
    }

    /// A name that was stored, perhaps before a rule was added.
    pub fn stored(text: impl Into<String>) -> Result<Self, NameError> {
        let text = text.into();
        let characters = text.chars().count();
        if characters == 0 || characters > Self::MAX_CHARACTERS {
            return Err(NameError::Length);
        }
        if is_blank(&text) {
            return Err(NameError::Blank);
        }
        if has_forbidden_characters(&text) {
            return Err(NameError::Characters);
        }
        Ok(Self(text))
    }

    /// The letters and digits in lower case, which readers tell names apart by. Without any, the name itself.
    #[must_use]
    pub fn folded(&self) -> String {
        let folded: String = self.0.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        if folded.is_empty() { self.0.clone() } else { folded }
    }

    /// The name as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reason why a text cannot be a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum NameError {
    /// Empty or too long.
    #[error("must be 1 to {} characters long", Name::MAX_CHARACTERS)]
    Length,
    /// Nothing in it is visible.
    #[error("must not be blank")]
    Blank,
    /// It holds characters that would garble a table or a log.
    #[error("{GARBLING}")]
    Characters,
    /// It contains an API key, which nobody may read.
    #[error("{NO_KEY}")]
    ApiKey,
    /// The activity log uses the word for people who are not members.
    #[error("must not be a word like “operator” or “someone”, which the audit log uses for others")]
    Reserved,
    /// Another member of the organisation has it.
    #[error("is another member's: add something that tells you apart")]
    Taken,
}

/// Reason why a text that contains an API key is refused.
pub(crate) const NO_KEY: &str = "must not contain an API key; revoke the key if others have seen it";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::keys::api_key::KeyFormat;

    #[test]
    fn a_name_is_kept_as_given() {
        assert_eq!(Name::new(" Dr. Ōsaka's clinic ").unwrap().as_str(), " Dr. Ōsaka's clinic ");
        assert!(Name::new("é".repeat(100)).is_ok());
    }

    #[test]
    fn an_unreadable_name_is_refused() {
        assert_eq!(Name::new(""), Err(NameError::Length));
        assert_eq!(Name::new("é".repeat(101)), Err(NameError::Length));
        assert_eq!(Name::new(" \u{200B}"), Err(NameError::Blank));
        assert_eq!(Name::new("a\nb"), Err(NameError::Characters));
        assert_eq!(Name::new("a\u{202E}b"), Err(NameError::Characters));
    }

    #[test]
    fn a_name_has_one_line_unless_it_is_stored_already() {
        for separator in ['\u{2028}', '\u{2029}'] {
            let text = format!("Ada{separator}Security alert");
            assert_eq!(Name::new(text.as_str()), Err(NameError::Characters));
            assert_eq!(Name::of_member(text.as_str()), Err(NameError::Characters));
            assert_eq!(Name::stored(text.as_str()).unwrap().as_str(), text);
        }
    }

    #[test]
    fn a_name_with_a_key_is_refused_unless_it_is_stored_already() {
        let format = KeyFormat::new(&"intake".parse().unwrap(), Environment::Production);
        let text = format!("Booking {}", format.mint([7; 32]).expose());
        assert_eq!(Name::new(text.as_str()), Err(NameError::ApiKey));
        assert_eq!(Name::of_member(text.as_str()), Err(NameError::ApiKey));
        assert_eq!(Name::stored(text.as_str()).unwrap().as_str(), text);
    }

    #[test]
    fn a_member_is_not_named_like_the_log_names_others() {
        for reserved in
            ["operator", "An Operator", "OPERATOR (root)", "O p e r a t o r", "Someone", "some-one", "System"]
        {
            assert_eq!(Name::of_member(reserved), Err(NameError::Reserved), "{reserved}");
        }
        for fine in ["Ada", "Someone Else", "Opera Torres", "日本"] {
            assert_eq!(Name::of_member(fine), Name::new(fine), "{fine}");
        }
    }

    #[test]
    fn names_are_folded_to_what_readers_distinguish() {
        for same in ["Ada One", "ADA  ONE", "ada-one.", "A\u{200B}da One"] {
            assert_eq!(Name::new(same).unwrap().folded(), "adaone", "{same}");
        }
        assert_eq!(Name::new("❤").unwrap().folded(), "❤");
    }
}
