//! An email address with which a member signs in.

use std::fmt;
use std::str::FromStr;

use crate::text::is_email_address;

/// The longest address that can be delivered to (RFC 5321).
const MAX_CHARACTERS: usize = 254;

/// A valid email address, kept as given. Two that differ only in case belong to the same member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmailAddress(String);

impl EmailAddress {
    /// The address as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address in lower case, which is the same for all spellings that belong to one member.
    #[must_use]
    pub fn folded(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl FromStr for EmailAddress {
    type Err = EmailAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() <= MAX_CHARACTERS && is_email_address(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(EmailAddressError)
        }
    }
}

impl fmt::Display for EmailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reason why a text is not an email address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a valid email address")]
pub struct EmailAddressError;
