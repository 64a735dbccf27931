//! Passwords of members: long enough, and none of those that everybody tries first.

use std::fmt;

use zeroize::Zeroizing;

use crate::accounts::guessable::{EasyToGuess, PasswordOwner, is_common};

/// A password that keeps the rules, to be hashed. Never printed.
///
/// ```
/// use intake_domain::accounts::{EasyToGuess, Password, PasswordError, PasswordOwner};
///
/// let ada = PasswordOwner { email: "ada@clinic.example", name: "Ada Lovelace", organisations: &[] };
/// let password = Password::new("four herons at the jetty", ada)?;
/// assert_eq!(format!("{password:?}"), "Password(…)");
/// assert_eq!(Password::new("too short", ada), Err(PasswordError::Length));
/// assert_eq!(Password::new("Summer2026!!", ada), Err(EasyToGuess::Common.into()));
/// assert_eq!(Password::new("ada lovelace 1", ada), Err(EasyToGuess::Name.into()));
/// # Ok::<(), PasswordError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Zeroizing<String>);

impl Password {
    /// Long enough that guessing takes years.
    pub const MIN_CHARACTERS: usize = 12;
    /// Longer than any sentence, and short enough to hash.
    pub const MAX_CHARACTERS: usize = 128;

    /// Accepts the text unchanged as the password of this person, or refuses it.
    pub fn new(text: &str, owner: PasswordOwner<'_>) -> Result<Self, PasswordError> {
        let password = Self::of_anybody(text)?;
        owner.fault_of(text).map_or(Ok(password), |fault| Err(fault.into()))
    }

    /// The same before it is known whose password it will be.
    pub(crate) fn of_anybody(text: &str) -> Result<Self, PasswordError> {
        if !(Self::MIN_CHARACTERS..=Self::MAX_CHARACTERS).contains(&text.chars().count()) {
            return Err(PasswordError::Length);
        }
        if is_common(text) {
            return Err(EasyToGuess::Common.into());
        }
        Ok(Self(Zeroizing::new(text.to_owned())))
    }

    /// The password that an account has: it may be older than a rule.
    pub(crate) fn known(right: &str) -> Self {
        Self(Zeroizing::new(right.to_owned()))
    }

    /// The password in plain text, only to be hashed.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

/// Reason why a text cannot be a member's password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum PasswordError {
    /// Too short or too long.
    #[error("must be {} to {} characters long", Password::MIN_CHARACTERS, Password::MAX_CHARACTERS)]
    Length,
    /// Others would guess it first.
    #[error(transparent)]
    Easy(#[from] EasyToGuess),
}

/// The salted hash of a password, in the PHC string format.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// Wraps a hash that a hasher made.
    #[must_use]
    pub fn new(phc: String) -> Self {
        Self(phc)
    }

    /// The hash, for storing and comparing.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether both were made with the same salt and parameters, which come before the last `$`.
    #[must_use]
    pub fn has_salt_of(&self, other: &Self) -> bool {
        let salt = |hash: &Self| hash.0.rsplit_once('$').map(|(salt, _)| salt.to_owned());
        salt(self) == salt(other)
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_counted_in_characters() {
        assert_eq!(Password::of_anybody("short horse"), Err(PasswordError::Length));
        assert!(Password::of_anybody("a long horse").is_ok());
        assert!(Password::of_anybody(&"é".repeat(5).chars().chain("größer!".chars()).collect::<String>()).is_ok());
        assert_eq!(Password::of_anybody(&"correct horse ".repeat(10)), Err(PasswordError::Length));
    }

    #[test]
    fn common_passwords_are_refused() {
        for text in ["123456qwerty", "QWERTY123456", "passwordpassword", "aaaaaaaaaaaaa", "abcabcabcabca"] {
            assert_eq!(Password::of_anybody(text), Err(EasyToGuess::Common.into()), "{text}");
        }
    }

    #[test]
    fn debug_output_shows_nothing() {
        let hash = PasswordHash::new("$argon2id$…".to_owned());
        assert_eq!(format!("{:?} {hash:?}", Password::of_anybody("a long horse")), "Ok(Password(…)) PasswordHash(…)");
    }
}
