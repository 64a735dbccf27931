//! Which idempotency keys somebody else's transaction holds in the database. Whoever sends one of them again waits beside
//! the others from the beginning.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use intake_domain::Registration;

/// Long enough for the next try of a client whose request was out of time.
const MEMORY: Duration = Duration::from_secs(10);
/// As many as an instance that hangs holds at most; beyond it each one is found out again.
const SUSPECTS_MAX: usize = 256;

/// Told apart by a hash: whoever is taken for another one waits beside the others for a moment, and no more.
#[derive(Default)]
pub(crate) struct Suspects {
    hasher: RandomState,
    until: Mutex<HashMap<u64, Instant>>,
    /// So that nobody takes the lock on a day without any.
    are_there: AtomicBool,
}

impl Suspects {
    pub(crate) fn contain(&self, registration: &Registration) -> bool {
        if !self.are_there.load(Ordering::Relaxed) {
            return false;
        }
        let Some(name) = self.name(registration) else { return false };
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        until.retain(|_, until| *until > now);
        self.are_there.store(!until.is_empty(), Ordering::Relaxed);
        until.contains_key(&name)
    }

    /// The row is held.
    pub(crate) fn add(&self, registration: &Registration) {
        let Some(name) = self.name(registration) else { return };
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if until.len() < SUSPECTS_MAX || until.contains_key(&name) {
            until.insert(name, now + MEMORY);
            self.are_there.store(true, Ordering::Relaxed);
        }
    }

    /// The row is held no longer.
    pub(crate) fn remove(&self, registration: &Registration) {
        let Some(name) = self.name(registration) else { return };
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.remove(&name);
        self.are_there.store(!until.is_empty(), Ordering::Relaxed);
    }

    fn name(&self, registration: &Registration) -> Option<u64> {
        let retry = registration.retry.as_ref()?;
        Some(self.hasher.hash_one((&registration.key, retry.key.as_str())))
    }
}
