//! The idempotency keys whose rows another transaction was found to hold. A request that repeats one of them goes to the
//! queue of held rows at once.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use intake_domain::Registration;

/// Long enough for the next try of a client whose request has timed out.
const MEMORY: Duration = Duration::from_secs(10);
/// The most rows that an instance which hangs can hold. Further ones are found to be held again at each try.
const SUSPECTS_MAX: usize = 256;

/// Keys are compared by a hash: a collision only sends a request through the queue of held rows.
#[derive(Default)]
pub(crate) struct Suspects {
    hasher: RandomState,
    until: Mutex<HashMap<u64, Instant>>,
    /// Whether there are any, so that the lock is not taken when there are none.
    are_any: AtomicBool,
}

impl Suspects {
    pub(crate) fn contain(&self, registration: &Registration) -> bool {
        if !self.are_any.load(Ordering::Relaxed) {
            return false;
        }
        let Some(name) = self.name(registration) else { return false };
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        until.retain(|_, until| *until > now);
        self.are_any.store(!until.is_empty(), Ordering::Relaxed);
        until.contains_key(&name)
    }

    /// Notes that the row is held.
    pub(crate) fn add(&self, registration: &Registration) {
        let Some(name) = self.name(registration) else { return };
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if until.len() < SUSPECTS_MAX || until.contains_key(&name) {
            until.insert(name, now + MEMORY);
            self.are_any.store(true, Ordering::Relaxed);
        }
    }

    /// Notes that the row is no longer held.
    pub(crate) fn remove(&self, registration: &Registration) {
        let Some(name) = self.name(registration) else { return };
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.remove(&name);
        self.are_any.store(!until.is_empty(), Ordering::Relaxed);
    }

    fn name(&self, registration: &Registration) -> Option<u64> {
        let retry = registration.retry.as_ref()?;
        Some(self.hasher.hash_one((&registration.key, retry.key.as_str())))
    }
}
