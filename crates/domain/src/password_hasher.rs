//! The port to password hashing: slow by intent, so it is done elsewhere than where requests are served.

use async_trait::async_trait;

use crate::password::{Password, PasswordHash};
use crate::store_error::StoreError;

/// Hashes and compares passwords. Refuses with [`StoreError::Overloaded`] rather than slow everything else down.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait PasswordHasher: Send + Sync {
    /// Hashes a password with this salt.
    async fn hash(&self, password: &Password, salt: [u8; 16]) -> Result<PasswordHash, StoreError>;

    /// Whether the text is the password. Without a hash to compare with it is not, and takes just as long.
    async fn matches(&self, presented: &str, hash: Option<PasswordHash>) -> Result<bool, StoreError>;
}
