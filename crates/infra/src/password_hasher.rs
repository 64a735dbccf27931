//! Argon2id on one thread that steps back for others: a flood of sign-ins waits in line and never slows the API.

use std::sync::LazyLock;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use argon2::password_hash::PasswordHasher as _;
use argon2::{Algorithm, Argon2, Params, PasswordVerifier, Version};
use async_trait::async_trait;
use intake_domain::{Password, PasswordHash, PasswordHasher, StoreError};
use tokio::sync::oneshot;

/// OWASP's first choice: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
/// Four bytes for each character of the longest password.
const MAX_PRESENTED: usize = Password::MAX_CHARACTERS * 4;
/// About a tenth of what a thread of the API gets when every core is busy, and a whole core when one is free.
const NICENESS: i32 = 10;
/// A second or two of work; whoever comes when the line is full is told so at once.
const LINE_LENGTH: usize = 64;
/// Whoever waits longer is told to come back.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// One password on its way through the line.
type Turn = Box<dyn FnOnce() + Send>;

/// The port [`PasswordHasher`] with Argon2id.
pub struct Argon2Hasher {
    line: SyncSender<Turn>,
}

impl Argon2Hasher {
    /// Starts the thread, which ends when this is dropped.
    pub fn start() -> std::io::Result<Self> {
        let (line, turns) = sync_channel::<Turn>(LINE_LENGTH);
        std::thread::Builder::new().name("password-hasher".to_owned()).spawn(move || {
            // Best effort: without it, hashing takes one core as any other work would.
            let _ = rustix::process::nice(NICENESS);
            for turn in turns {
                turn();
            }
        })?;
        Ok(Self { line })
    }

    async fn in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let turn = move || {
            if !answer.is_closed() {
                let _ = answer.send(work());
            }
        };
        self.line.try_send(Box::new(turn)).map_err(|_| StoreError::Overloaded)?;
        let done = tokio::time::timeout(MAX_WAIT, answered).await.map_err(|_| StoreError::Overloaded)?;
        done.map_err(|error| StoreError::Unexpected(error.into()))?
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
