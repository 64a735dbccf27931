//! Passwords of members: long enough, and none of those that everybody tries first.

use std::fmt;

use zeroize::Zeroizing;

/// The common passwords that are long enough to be tried here, in lower case. From the frequency lists of zxcvbn (MIT).
const COMMON: &str = include_str!("common_passwords.txt");

/// A password that keeps the rules, to be hashed. Never printed.
///
/// ```
/// use intake_domain::{Password, PasswordError};
///
/// let password = Password::new("four herons at the jetty")?;
/// assert_eq!(format!("{password:?}"), "Password(…)");
/// assert_eq!(Password::new("too short"), Err(PasswordError::Length));
/// assert_eq!(Password::new("aaaaaaaaaaaa"), Err(PasswordError::Common));
/// # Ok::<(), PasswordError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Zeroizing<String>);

impl Password {
    /// Long enough that guessing takes years.
    pub const MIN_CHARACTERS: usize = 12;
    /// Longer than any sentence, and short enough to hash.
    pub const MAX_CHARACTERS: usize = 128;

    /// Accepts the text unchanged, or refuses it.
    pub fn new(text: &str) -> Result<Self, PasswordError> {
        if !(Self::MIN_CHARACTERS..=Self::MAX_CHARACTERS).contains(&text.chars().count()) {
            return Err(PasswordError::Length);
        }
        if is_common(&text.to_lowercase()) {
            return Err(PasswordError::Common);
        }
        Ok(Self(Zeroizing::new(text.to_owned())))
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

/// Why a text cannot be a member's password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// Too short or too long.
    #[error("must be {} to {} characters long", Password::MIN_CHARACTERS, Password::MAX_CHARACTERS)]
    Length,
    /// Among the first passwords that an attacker tries.
    #[error("is too easy to guess: choose a less common one")]
    Common,
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

    /// Whether both were made with the same salt and parameters, which come before the last `$`.
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

fn is_common(text: &str) -> bool {
    COMMON.lines().any(|common| common == text) || repeats_itself(text)
}

/// One short text over and over: `passwordpassword`, `abcabcabcabc`.
fn repeats_itself(text: &str) -> bool {
    let characters: Vec<char> = text.chars().collect();
    let has_period = |period: usize| characters.iter().zip(characters.iter().skip(period)).all(|(a, b)| a == b);
    (1..=characters.len() / 2).any(has_period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_counted_in_characters() {
        assert_eq!(Password::new("short horse"), Err(PasswordError::Length));
        assert!(Password::new("a long horse").is_ok());
        assert!(Password::new(&"é".repeat(5).chars().chain("größer!".chars()).collect::<String>()).is_ok());
        assert_eq!(Password::new(&"correct horse ".repeat(10)), Err(PasswordError::Length));
    }

    #[test]
    fn common_passwords_are_refused() {
        for text in ["123456qwerty", "QWERTY123456", "passwordpassword", "aaaaaaaaaaaaa", "abcabcabcabca"] {
            assert_eq!(Password::new(text), Err(PasswordError::Common), "{text}");
        }
    }

    #[test]
    fn debug_output_shows_nothing() {
        let hash = PasswordHash::new("$argon2id$…".to_owned());
        assert_eq!(format!("{:?} {hash:?}", Password::new("a long horse")), "Ok(Password(…)) PasswordHash(…)");
    }
}
