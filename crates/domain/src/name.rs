//! Names of organisations, keys and members.

use std::fmt;

use crate::patients::rules;

/// A name for people to read: 1 to 100 characters, not blank, free of control characters and bidirectional overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    /// Long enough for any title, short enough for a table's column.
    pub const MAX_CHARACTERS: usize = 100;

    /// Accepts the text unchanged, or refuses it.
    pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
        let text = text.into();
        let characters = text.chars().count();
        if characters == 0 || characters > Self::MAX_CHARACTERS {
            return Err(NameError::Length);
        }
        if rules::is_blank(&text) {
            return Err(NameError::Blank);
        }
        if rules::has_forbidden_characters(&text) {
            return Err(NameError::Characters);
        }
        Ok(Self(text))
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

/// Why a text cannot be a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Empty or too long.
    #[error("must be 1 to {} characters long", Name::MAX_CHARACTERS)]
    Length,
    /// Nothing in it is visible.
    #[error("must not be blank")]
    Blank,
    /// It holds characters that would garble a table or a log.
    #[error("{}", rules::FORBIDDEN_CHARACTERS)]
    Characters,
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
