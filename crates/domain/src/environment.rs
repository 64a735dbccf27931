//! The two environments, which share neither keys nor databases.

use std::fmt;
use std::str::FromStr;

/// One of the two environments, each with its own kind of key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Environment {
    /// Takes `_demo_` keys.
    Development,
    /// Takes `_live_` keys.
    Production,
}

impl Environment {
    pub(crate) const ALL: [Self; 2] = [Self::Development, Self::Production];

    /// The name used in settings and in the database's stamp.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Development => "development",
            Self::Production => "production",
        }
    }

    /// The part of a key that names the environment, between the prefix and the secret.
    pub(crate) fn key_mark(self) -> &'static str {
        match self {
            Self::Development => "_demo_",
            Self::Production => "_live_",
        }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::Development => Self::Production,
            Self::Production => Self::Development,
        }
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Environment {
    type Err = UnknownEnvironment;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "development" => Ok(Self::Development),
            "production" => Ok(Self::Production),
            _ => Err(UnknownEnvironment),
        }
    }
}

/// Reason why a text is not the name of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be development or production")]
pub struct UnknownEnvironment;
