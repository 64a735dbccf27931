//! Whether passwords count.

/// Setting that decides if members sign in with a password, or with a passkey alone, as well as by single sign-on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Passwords {
    /// They do.
    #[default]
    On,
    /// The provider of single sign-on lets everyone in, and nothing else does: a person whom it no longer lets in does
    /// not get in by a password or passkey made here. Passkeys go on as second factors.
    Off,
}

impl Passwords {
    /// Returns whether members sign in with them.
    #[must_use]
    pub fn are_on(self) -> bool {
        self == Self::On
    }
}
