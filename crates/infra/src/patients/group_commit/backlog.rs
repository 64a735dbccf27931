//! How many requests wait for the database, and whether another one would wait past its deadline: then it is refused at
//! once.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use intake_domain::StoreError;

use super::job::BATCH_MAX;

/// The newest batch counts for one part in this many of the moving average: a half.
const NEWEST_WEIGHT: u64 = 2;

pub(crate) struct Backlog {
    writers: usize,
    waiting: AtomicUsize,
    /// The moving average of the time that a batch takes, in microseconds.
    batch_time: AtomicU64,
}

/// Counts one request that waits, until it is dropped.
pub(crate) struct Waiting<'a>(&'a Backlog);

impl Backlog {
    pub(crate) fn new(writers: usize) -> Self {
        Self { writers, waiting: AtomicUsize::new(0), batch_time: AtomicU64::new(0) }
    }

    /// Counts one more request, unless those ahead of it will take longer than its deadline. The estimate ignores that
    /// the database may be away: it may be back at any moment.
    pub(crate) fn enter(&self, deadline: Duration) -> Result<Waiting<'_>, StoreError> {
        let waiting = Waiting(self);
        let ahead = self.waiting.fetch_add(1, Ordering::Relaxed);
        // The batches ahead, including the one in progress; its own comes on top.
        let batches = (ahead / (BATCH_MAX * self.writers)) as u64;
        let wait = Duration::from_micros(self.batch_time.load(Ordering::Relaxed).saturating_mul(batches + 1));
        // However slow the database is, some request must try it.
        if batches > 0 && wait > deadline { Err(StoreError::Overloaded) } else { Ok(waiting) }
    }

    /// Returns how long a batch takes on average.
    pub(crate) fn batch_time(&self) -> Duration {
        Duration::from_micros(self.batch_time.load(Ordering::Relaxed))
    }

    /// Notes how long a batch took.
    pub(crate) fn note(&self, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let known = self.batch_time.load(Ordering::Relaxed);
        let smooth = known - known / NEWEST_WEIGHT + time / NEWEST_WEIGHT;
        self.batch_time.store(smooth, Ordering::Relaxed);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_secs(1);

    #[test]
    fn a_request_that_would_wait_too_long_is_refused_until_others_have_left() {
        let backlog = Backlog::new(1);
        for _ in 0..100 {
            backlog.note(Duration::from_millis(400));
        }
        let mut waiting: Vec<_> = (0..2 * BATCH_MAX).map(|_| backlog.enter(DEADLINE).unwrap()).collect();
        for _ in 0..3 {
            assert!(matches!(backlog.enter(DEADLINE), Err(StoreError::Overloaded)));
        }
        waiting.pop();
        assert!(backlog.enter(DEADLINE).is_ok());
    }

    #[test]
    fn as_long_as_nothing_is_known_nobody_is_refused() {
        let backlog = Backlog::new(1);
        let waiting: Vec<_> = (0..100 * BATCH_MAX).map(|_| backlog.enter(DEADLINE)).collect();
        assert!(waiting.iter().all(Result::is_ok));
    }
}
