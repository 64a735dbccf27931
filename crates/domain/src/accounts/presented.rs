//! A password or a code as someone typed it to prove who they are. Kept only until it has been compared, and never
//! printed.

use std::fmt;

use zeroize::Zeroizing;

use crate::accounts::password::Password;

/// A password as typed into a form. Never printed by `Debug`.
#[derive(Clone)]
pub struct PresentedPassword(Zeroizing<String>);

impl PresentedPassword {
    /// Takes the text as it was typed.
    #[must_use]
    pub fn new(typed: impl Into<String>) -> Self {
        Self(Zeroizing::new(typed.into()))
    }

    /// The text as it was typed, only to be compared or hashed.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns whether the text is longer than any member's password can be: a hasher need not look at the whole of it.
    #[must_use]
    pub fn is_too_long(&self) -> bool {
        self.0.chars().nth(Password::MAX_CHARACTERS).is_some()
    }
}

impl fmt::Debug for PresentedPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresentedPassword(…)")
    }
}

/// A code as typed into a form: the code of an authenticator app, or a recovery code. Never printed by `Debug`.
#[derive(Clone)]
pub struct PresentedCode(Zeroizing<String>);

impl PresentedCode {
    /// Takes the text as it was typed.
    #[must_use]
    pub fn new(typed: impl Into<String>) -> Self {
        Self(Zeroizing::new(typed.into()))
    }

    /// Returns whether it is too long for a code of the app.
    #[must_use]
    pub fn is_recovery_code(&self) -> bool {
        self.0.chars().filter(|c| !c.is_whitespace()).nth(8).is_some()
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PresentedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresentedCode(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_shows_nothing() {
        let shown = format!("{:?} {:?}", PresentedPassword::new("a long horse"), PresentedCode::new("123456"));
        assert_eq!(shown, "PresentedPassword(…) PresentedCode(…)");
    }

    #[test]
    fn a_text_longer_than_any_password_is_too_long() {
        for (characters, is_too_long) in [(0, false), (128, false), (129, true), (5_000, true)] {
            assert_eq!(PresentedPassword::new("é".repeat(characters)).is_too_long(), is_too_long, "{characters}");
        }
    }
}
