//! Argon2id on one thread that steps back for others: a flood of sign-ins waits in a queue and never slows the API.

use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

use argon2::password_hash::{PasswordHasher as _, phc};
use argon2::{Algorithm, Argon2, Params, PasswordVerifier, Version};
use async_trait::async_trait;
use intake_domain::{HasherError, Password, PasswordHash, PasswordHasher, PresentedPassword, Requester, Salt};
use tokio::sync::oneshot;

use crate::accounts::fair_queue::{FairQueue, Pushed};
use crate::metrics::HASHING_QUEUE_LENGTH;
use crate::vital_thread::spawn_vital;

/// OWASP's first choice: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
/// About a tenth of what a thread of the API gets when every core is busy, and a whole core when one is free.
const NICENESS: i32 = 10;
/// The salt with which a password is hashed when there is no such member: that takes as long as if there was one.
const NOBODYS_SALT: &[u8] = b"nobody's own salt";

/// One password in the queue.
type Job = Box<dyn FnOnce() + Send>;

/// The port [`PasswordHasher`] with Argon2id.
pub struct Argon2Hasher {
    queue: Arc<FairQueue<Job>>,
    /// Time for which a password waits before its sender is asked to try again.
    deadline: Duration,
}

impl Argon2Hasher {
    /// Starts the thread, which ends when this is dropped.
    pub fn start(deadline: Duration) -> std::io::Result<Self> {
        let queue = Arc::new(FairQueue::<Job>::new(&HASHING_QUEUE_LENGTH));
        let taker = Taker(Arc::clone(&queue));
        spawn_vital("password-hasher", Builder::new(), move |pulse| {
            // Best effort: without it, hashing takes one core as any other work would.
            let _ = rustix::process::nice(NICENESS);
            while let Some(job) = taker.0.next() {
                pulse.beat();
                job();
                pulse.rest();
            }
        })?;
        Ok(Self { queue, deadline })
    }

    async fn run_in_turn<T: Send + 'static>(
        &self,
        requester: Requester,
        work: impl FnOnce() -> Result<T, HasherError> + Send + 'static,
    ) -> Result<T, HasherError> {
        let (answer, answered) = oneshot::channel();
        let job = move || {
            if !answer.is_closed() {
                let _ = answer.send(work());
            }
        };
        match self.queue.push(requester, Box::new(job)) {
            Pushed::Queued => {}
            Pushed::AlreadyQueued => return Err(HasherError::AlreadyQueued),
            Pushed::Full => return Err(HasherError::Full),
            Pushed::Closed => return Err(HasherError::Failed("the password hasher has ended".into())),
        }
        let done = tokio::time::timeout(self.deadline, answered).await.map_err(|_| HasherError::Full)?;
        done.map_err(|error| HasherError::Failed(error.into()))?
    }
}

impl Drop for Argon2Hasher {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// The thread's end of the queue. Dropping it, even by a panic, closes the queue, so that no job waits for ever.
struct Taker(Arc<FairQueue<Job>>);

impl Drop for Taker {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[async_trait]
impl PasswordHasher for Argon2Hasher {
    async fn hash(&self, requester: Requester, password: &Password, salt: Salt) -> Result<PasswordHash, HasherError> {
        let password = password.clone();
        let hashed = self.run_in_turn(requester, move || match salt {
            Salt::Random(salt) => hash(password.expose(), &salt),
            Salt::Of(other) => hash(password.expose(), &salt_of(&other)?),
        });
        hashed.await
    }

    async fn find(
        &self,
        requester: Requester,
        presented: &PresentedPassword,
        hashes: &[PasswordHash],
    ) -> Result<Option<PasswordHash>, HasherError> {
        let (presented, hashes) = (presented.clone(), hashes.to_vec());
        let found = self.run_in_turn(requester, move || {
            // No password is that long, but the refusal must take just as long as a comparison.
            let text = if presented.is_too_long() { "" } else { presented.expose() };
            let hashed = match hashes.first() {
                Some(first) => hash(text, &salt_of(first)?)?,
                None => hash(text, NOBODYS_SALT)?,
            };
            for stored in hashes {
                let is_right = match stored.has_salt_of(&hashed) {
                    true => parsed(&stored)? == parsed(&hashed)?,
                    false => argon2()?.verify_password(text.as_bytes(), &parsed(&stored)?).is_ok(),
                };
                if is_right && !presented.is_too_long() {
                    return Ok(Some(stored));
                }
            }
            Ok(None)
        });
        found.await
    }
}

/// Two that are parsed are compared in constant time.
fn parsed(hash: &PasswordHash) -> Result<phc::PasswordHash, HasherError> {
    phc::PasswordHash::new(hash.as_str()).map_err(failed)
}

fn salt_of(hash: &PasswordHash) -> Result<phc::Salt, HasherError> {
    parsed(hash)?.salt.ok_or_else(|| failed("a stored hash has no salt"))
}

fn hash(password: &str, salt: &[u8]) -> Result<PasswordHash, HasherError> {
    let hash = argon2()?.hash_password_with_salt(password.as_bytes(), salt).map_err(failed)?;
    Ok(PasswordHash::new(hash.to_string()))
}

fn argon2() -> Result<Argon2<'static>, HasherError> {
    let params = Params::new(MEMORY_KIB, PASSES, 1, None).map_err(failed)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn failed(error: impl std::fmt::Display) -> HasherError {
    HasherError::Failed(error.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use intake_domain::{Network, PasswordOwner};

    const DEADLINE: Duration = Duration::from_secs(60);
    const REQUESTER: fn() -> Requester = || Requester::Stranger(Network::of_neighbours(None));

    fn run<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
    }

    #[test]
    fn the_longest_password_is_accepted_and_a_longer_one_is_refused() {
        let hasher = Argon2Hasher::start(DEADLINE).unwrap();
        // Four bytes for each character: as long as a password can be.
        let longest: String = ('\u{1F40E}'..).take(128).collect();
        run(async {
            let salt = Salt::Random([7; 16]);
            let stored = hasher
                .hash(REQUESTER(), &Password::new(&longest, PasswordOwner::default()).unwrap(), salt)
                .await
                .unwrap();
            for (typed, is_right) in
                [(longest.clone(), true), (longest.clone() + "x", false), (longest.clone() + &longest, false)]
            {
                let presented = PresentedPassword::new(typed);
                let found = hasher.find(REQUESTER(), &presented, std::slice::from_ref(&stored)).await.unwrap();
                assert_eq!(found.is_some(), is_right);
            }
        });
    }

    #[test]
    fn the_right_one_of_several_hashes_is_found_with_any_salts() {
        let hasher = Argon2Hasher::start(DEADLINE).unwrap();
        run(async {
            let hash = async |text: &str, salt| {
                hasher.hash(REQUESTER(), &Password::new(text, PasswordOwner::default()).unwrap(), salt).await.unwrap()
            };
            let first = hash("correct horse battery", Salt::Random([7; 16])).await;
            let same_salt = hash("four herons at the jetty", Salt::Of(first.clone())).await;
            let other_salt = hash("another long password", Salt::Random([8; 16])).await;
            assert!(same_salt.has_salt_of(&first) && same_salt != first && !other_salt.has_salt_of(&first));
            let all = [first.clone(), same_salt.clone(), other_salt.clone()];
            for (typed, right) in [
                ("correct horse battery", Some(first)),
                ("four herons at the jetty", Some(same_salt)),
                ("another long password", Some(other_salt)),
                ("wrong horse battery", None),
            ] {
                assert_eq!(
                    hasher.find(REQUESTER(), &PresentedPassword::new(typed), &all).await.unwrap(),
                    right,
                    "{typed}"
                );
            }
        });
    }

    #[test]
    fn a_hasher_that_has_died_is_a_failure_and_not_a_full_line() {
        let hasher = Argon2Hasher::start(DEADLINE).unwrap();
        assert_eq!(hasher.queue.push(REQUESTER(), Box::new(|| panic!("a defect"))), Pushed::Queued);
        let presented = PresentedPassword::new("any");
        let failed = |answer: Result<_, _>| matches!(answer, Err(HasherError::Failed(_)));
        // A panic takes a moment: its backtrace is printed first.
        while hasher.queue.push(REQUESTER(), Box::new(|| ())) != Pushed::Closed {
            std::thread::sleep(Duration::from_millis(10));
        }
        run(async { assert!(failed(hasher.find(REQUESTER(), &presented, &[]).await)) });
    }
}
