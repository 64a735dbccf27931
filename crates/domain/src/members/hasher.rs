//! The port to password hashing. Hashing is slow on purpose, so it is not done where requests are served: passwords wait
//! in a line, one is hashed after the other, and no single client can fill the line for everyone else.

use async_trait::async_trait;

use crate::ids::MemberId;
use crate::members::password::{Password, PasswordHash};
use crate::members::presented::PresentedPassword;
use crate::network::Network;
use crate::sessions::token::TokenDigest;
use crate::store_error::{Source, StoreError};

/// Whose password waits in line. Each waiter can have one password in line at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waiter {
    /// A member who is signed in, or is signing in from a network they have signed in from before. Goes before strangers.
    Member(MemberId),
    /// The holder of this open invitation or reset link. Goes before strangers.
    Guest(TokenDigest),
    /// Anyone else, from this network.
    Stranger(Network),
}

/// Why a password was neither hashed nor compared.
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
    /// For callers that only tell the reader to try again.
    fn from(error: HasherError) -> Self {
        match error {
            HasherError::AlreadyInLine | HasherError::Full => Self::Overloaded,
            HasherError::Failed(source) => Self::Unexpected(source),
        }
    }
}

/// Hashes and compares passwords. Refuses work rather than slow everything else down.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait PasswordHasher: Send + Sync {
    /// Hashes a password with this salt.
    async fn hash(&self, waiter: Waiter, password: &Password, salt: [u8; 16]) -> Result<PasswordHash, HasherError>;

    /// Whether the text is the password of this hash. Without a hash the answer is no, and takes just as long.
    async fn matches(
        &self,
        waiter: Waiter,
        presented: &PresentedPassword,
        hash: Option<PasswordHash>,
    ) -> Result<bool, HasherError>;
}
