//! The port to password hashing: slow by intent, so it is done elsewhere than where requests are served, one password
//! after the other, in a line that nobody can fill for everybody else.

use async_trait::async_trait;

use crate::ids::MemberId;
use crate::members::password::{Password, PasswordHash};
use crate::members::presented::PresentedPassword;
use crate::network::Network;
use crate::sessions::token::TokenDigest;
use crate::store_error::{Source, StoreError};

/// Who waits in line. Of each, one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waiter {
    /// A member who is signed in, or signs in from where it has signed in before. Goes before all strangers.
    Member(MemberId),
    /// Whoever holds this open invitation. Goes before all strangers.
    Guest(TokenDigest),
    /// Somebody in this network who has not proved anything.
    Stranger(Network),
}

/// Why a password was not looked at.
#[derive(Debug, thiserror::Error)]
pub enum HasherError {
    /// The same waiter is in line already.
    #[error("another password of the same waiter is in line")]
    AlreadyInLine,
    /// Too many others are in line; trying again later may help.
    #[error("the line of the password hasher is full")]
    Full,
    /// Anything else: a defect of the hasher, or of a stored hash.
    #[error("the password hasher failed")]
    Failed(#[source] Source),
}

impl From<HasherError> for StoreError {
    /// For callers who tell the reader no more than to try again.
    fn from(error: HasherError) -> Self {
        match error {
            HasherError::AlreadyInLine | HasherError::Full => Self::Overloaded,
            HasherError::Failed(source) => Self::Unexpected(source),
        }
    }
}

/// Hashes and compares passwords. Refuses rather than slow everything else down.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait PasswordHasher: Send + Sync {
    /// Hashes a password with this salt.
    async fn hash(&self, waiter: Waiter, password: &Password, salt: [u8; 16]) -> Result<PasswordHash, HasherError>;

    /// Whether the text is the password. Without a hash to compare with it is not, and takes just as long.
    async fn matches(
        &self,
        waiter: Waiter,
        presented: &PresentedPassword,
        hash: Option<PasswordHash>,
    ) -> Result<bool, HasherError>;
}
