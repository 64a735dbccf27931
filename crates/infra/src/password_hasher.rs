//! Argon2id on blocking threads, a few at once: a flood of sign-ins waits in line and never slows the API.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use argon2::password_hash::PasswordHasher as _;
use argon2::{Algorithm, Argon2, Params, PasswordVerifier, Version};
use async_trait::async_trait;
use intake_domain::{Password, PasswordHash, PasswordHasher, StoreError};
use tokio::sync::Semaphore;

/// OWASP's first choice: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
/// One of two cores stays free for patients.
const AT_ONCE: usize = 1;
/// Four bytes for each character of the longest password.
const MAX_PRESENTED: usize = Password::MAX_CHARACTERS * 4;
/// Whoever waits longer is told to come back.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The port [`PasswordHasher`] with Argon2id.
pub struct Argon2Hasher {
    turns: Arc<Semaphore>,
}

impl Argon2Hasher {
    /// A hasher with a line of its own.
    #[must_use]
    pub fn new() -> Self {
        Self { turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let turn = tokio::time::timeout(MAX_WAIT, Arc::clone(&self.turns).acquire_owned()).await;
        let turn = turn.map_err(|_| StoreError::Overloaded)?.map_err(|error| StoreError::Unexpected(error.into()))?;
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        done.await.map_err(|error| StoreError::Unexpected(error.into()))?
    }
}

impl Default for Argon2Hasher {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl PasswordHasher for Argon2Hasher {
    async fn hash(&self, password: &Password, salt: [u8; 16]) -> Result<PasswordHash, StoreError> {
        let password = password.clone();
        self.in_turn(move || hash(password.expose(), &salt)).await
    }

    async fn matches(&self, presented: &str, stored: Option<PasswordHash>) -> Result<bool, StoreError> {
        // Longer than any password can be: not worth the work.
        let presented = presented.get(..MAX_PRESENTED.min(presented.len())).unwrap_or_default().to_owned();
        self.in_turn(move || {
            // Nobody's hash takes just as long.
            let compared = stored.as_ref().unwrap_or(&NOBODY);
            let parsed = argon2::password_hash::phc::PasswordHash::new(compared.as_str()).map_err(unexpected)?;
            let is_right = argon2()?.verify_password(presented.as_bytes(), &parsed).is_ok();
            Ok(is_right && stored.is_some())
        })
        .await
    }
}

/// What a sign-in without a member is compared with.
static NOBODY: LazyLock<PasswordHash> = LazyLock::new(|| {
    hash("nobody's password", b"nobody's own salt").unwrap_or_else(|_| PasswordHash::new(String::new()))
});

fn hash(password: &str, salt: &[u8]) -> Result<PasswordHash, StoreError> {
    let hash = argon2()?.hash_password_with_salt(password.as_bytes(), salt).map_err(unexpected)?;
    Ok(PasswordHash::new(hash.to_string()))
}

fn argon2() -> Result<Argon2<'static>, StoreError> {
    let params = Params::new(MEMORY_KIB, PASSES, 1, None).map_err(unexpected)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn unexpected(error: impl std::fmt::Display) -> StoreError {
    StoreError::Unexpected(error.to_string().into())
}
