//! What a member may do.

use std::fmt;
use std::str::FromStr;

/// The role of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Looks after members and keys, and sees what everybody did.
    Administrator,
    /// Looks after keys alone.
    KeyManager,
    /// Sees what an administrator sees, and changes nothing but the own account.
    Auditor,
}

/// The text names no role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be administrator, key-manager or auditor")]
pub struct UnknownRole;

impl Role {
    /// Every role, the one that may do most first.
    pub const ALL: [Self; 3] = [Self::Administrator, Self::KeyManager, Self::Auditor];

    /// Returns whether this role may do less than the other one.
    #[must_use]
    pub fn may_less_than(self, other: Self) -> bool {
        Self::ALL.iter().position(|role| *role == self) > Self::ALL.iter().position(|role| *role == other)
    }

    /// The name it is stored and sent under.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Administrator => "administrator",
            Self::KeyManager => "key-manager",
            Self::Auditor => "auditor",
        }
    }

    /// Returns whether the member may create, replace, pause, revoke and describe keys.
    #[must_use]
    pub fn manages_keys(self) -> bool {
        matches!(self, Self::Administrator | Self::KeyManager)
    }

    /// Returns whether the member may see the other members, and what everybody did.
    #[must_use]
    pub fn sees_everything(self) -> bool {
        matches!(self, Self::Administrator | Self::Auditor)
    }

    /// Returns whether the member may change who belongs to the organisation, and how they sign in.
    #[must_use]
    pub fn administers(self) -> bool {
        self == Self::Administrator
    }
}

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or(UnknownRole)
    }
}

impl fmt::Display for Role {
    /// As people read it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Administrator => "Administrator",
            Self::KeyManager => "Key manager",
            Self::Auditor => "Auditor",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_found_by_its_name_alone() {
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        for other in ["", "Administrator", "key manager", "owner"] {
            assert_eq!(other.parse::<Role>(), Err(UnknownRole), "{other}");
        }
    }
}
