//! The idempotency keys whose rows another transaction was found to have locked. A request that repeats one of them
//! goes to the queue of locked rows at once.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::patients::batch::task::Request;

/// Long enough for the next try of a client whose request has timed out.
const MEMORY: Duration = Duration::from_secs(10);
/// The most rows that an instance which hangs can lock. Further ones are found to be locked again at each try.
const LOCKED_MAX: usize = 256;

/// Keys are compared by a hash: a collision only sends a request through the queue of locked rows.
#[derive(Default)]
pub(crate) struct LockedKeys {
    hasher: RandomState,
    until: Mutex<HashMap<u64, Instant>>,
    /// True if there are any, so that the lock is not taken when there are none.
    are_any: AtomicBool,
}

impl LockedKeys {
    pub(crate) fn contain(&self, request: &Request) -> bool {
        if !self.are_any.load(Ordering::Relaxed) {
            return false;
        }
        let Some(name) = self.name(request) else { return false };
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        until.retain(|_, until| *until > now);
        self.are_any.store(!until.is_empty(), Ordering::Relaxed);
        until.contains_key(&name)
    }

    /// Notes that the row is locked.
    pub(crate) fn add(&self, request: &Request) {
        let Some(name) = self.name(request) else { return };
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if until.len() < LOCKED_MAX || until.contains_key(&name) {
            until.insert(name, now + MEMORY);
            self.are_any.store(true, Ordering::Relaxed);
        }
    }

    /// Notes that the row is no longer locked.
    pub(crate) fn remove(&self, request: &Request) {
        let Some(name) = self.name(request) else { return };
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.remove(&name);
        self.are_any.store(!until.is_empty(), Ordering::Relaxed);
    }

    fn name(&self, request: &Request) -> Option<u64> {
        Some(self.hasher.hash_one((request.holder()?, request.idempotency_key()?)))
    }
}
