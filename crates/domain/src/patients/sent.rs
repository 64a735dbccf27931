//! What was sent for a field.

use std::borrow::Cow;
use std::fmt;

/// Value that was sent for one field.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Sent<'a> {
    /// The field was omitted, or null.
    #[default]
    Nothing,
    /// Something other than a string.
    NotText,
    /// A string, exactly as sent.
    Text(Cow<'a, str>),
}

impl Sent<'_> {
    /// The string, if one was sent.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Nothing | Self::NotText => None,
        }
    }
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for Sent<'a> {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

impl fmt::Debug for Sent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::NotText => "NotText",
            Self::Text(_) => "Text(…)",
        })
    }
}
