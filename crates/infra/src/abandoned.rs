//! How long to wait for a call into the database that may never return: a server that is stopped, or whose disk does
//! not answer, keeps its connections open and says nothing. Such a call cannot be ended, and must not be cancelled (a
//! commit that waits for its standby would then pass for done), so its thread and its connection are abandoned.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use crate::metrics::RECONNECTS;

/// Far longer than any statement here takes. It is doubled for each call that is abandoned before another one
/// succeeds, so that a server that takes connections and does nothing over them gets few of them.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(1);
const STATEMENT_TIMEOUT_MAX: Duration = Duration::from_secs(60);
/// Number of calls that may hang at the same time.
const ABANDONED_MAX: usize = 32;

/// Counts the calls that have been abandoned.
#[derive(Default)]
pub(crate) struct Abandoned {
    /// Calls that have not returned yet.
    hanging: AtomicUsize,
    /// Calls abandoned since one last succeeded.
    in_a_row: AtomicU32,
    /// All calls abandoned since the start.
    total: AtomicUsize,
}

/// Reason why a call has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// It was abandoned, or may not be made because too many others hang.
    #[error("a statement hangs in the database")]
    Hangs,
    /// It could not be started, or panicked.
    #[error("a call into the database could not be made")]
    Failed(#[from] std::io::Error),
}

/// The side of a call that waits. Dropped before the call has ended, it abandons the call.
pub(crate) struct Waiting<T> {
    held: Arc<Mutex<Option<T>>>,
    abandoned: Arc<Abandoned>,
    may_abandon: bool,
}

/// The side of a call that works.
pub(crate) struct Working<T> {
    /// None: the call is over.
    held: Option<Arc<Mutex<Option<T>>>>,
    abandoned: Arc<Abandoned>,
}

impl Abandoned {
    /// Returns how long the next call may take. None: [`ABANDONED_MAX`] calls hang, and one of them must return first.
    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        let doubled = STATEMENT_TIMEOUT.saturating_mul(2_u32.saturating_pow(self.in_a_row.load(Ordering::Relaxed)));
        (self.hanging.load(Ordering::Relaxed) < ABANDONED_MAX).then(|| doubled.min(STATEMENT_TIMEOUT_MAX))
    }

    /// Returns whether a call was abandoned and has not returned.
    pub(crate) fn has_hanging(&self) -> bool {
        self.hanging.load(Ordering::Relaxed) > 0
    }

    /// Returns how many calls were abandoned since the start.
    pub(crate) fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// The two sides of a call. What it holds goes to the side that ends first. If [`ABANDONED_MAX`] calls hang, this
    /// one cannot be abandoned.
    pub(crate) fn begin<T>(self: &Arc<Self>, held: T) -> (Waiting<T>, Working<T>) {
        let held = Arc::new(Mutex::new(Some(held)));
        let working = Working { held: Some(Arc::clone(&held)), abandoned: Arc::clone(self) };
        (Waiting { held, abandoned: Arc::clone(self), may_abandon: self.statement_timeout().is_some() }, working)
    }

    /// Makes a call on a thread of its own and waits for it at most this long.
    pub(crate) fn call<T: Send + 'static>(
        self: &Arc<Self>,
        thread: &str,
        limit: Duration,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CallError> {
        self.statement_timeout().ok_or(CallError::Hangs)?;
        let (waiting, working) = self.begin(());
        let (answer, answered) = channel();
        Builder::new().name(thread.to_owned()).spawn(move || {
            let result = call();
            drop(working);
            // What nobody waits for any more is dropped here.
            let _ = answer.send(result);
        })?;
        match answered.recv_timeout(limit) {
            Ok(result) => Ok(result),
            Err(_) if waiting.abandon() => Err(CallError::Hangs),
            Err(_) => answered.recv().map_err(|_| std::io::Error::other("it panicked").into()),
        }
    }

    /// Counts a call that is being abandoned: before it is certain, so that it cannot return before it was counted.
    pub(crate) fn add(&self) {
        self.hanging.fetch_add(1, Ordering::Relaxed);
        self.in_a_row.fetch_add(1, Ordering::Relaxed);
    }

    /// A call that was counted has returned.
    pub(crate) fn returned(&self) {
        self.hanging.fetch_sub(1, Ordering::Relaxed);
    }

    /// A call was counted, and turned out to have finished in time.
    pub(crate) fn undo(&self) {
        self.returned();
        let _ = self.in_a_row.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
    }

    /// Notes that a call succeeded: the database does not hang.
    pub(crate) fn succeeded(&self) {
        self.in_a_row.store(0, Ordering::Relaxed);
    }
}

impl<T> Waiting<T> {
    /// Abandons the call, unless it has ended.
    pub(crate) fn abandon(mut self) -> bool {
        self.try_to_abandon()
    }

    fn try_to_abandon(&mut self) -> bool {
        if !std::mem::take(&mut self.may_abandon) {
            return false;
        }
        // Counted first, because the call may end at any moment.
        self.abandoned.add();
        let is_abandoned = take(&self.held).is_some();
        if is_abandoned {
            self.abandoned.total.fetch_add(1, Ordering::Relaxed);
            RECONNECTS.add_one();
        } else {
            self.abandoned.undo();
        }
        is_abandoned
    }
}

impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        self.try_to_abandon();
    }
}

impl<T> Working<T> {
    /// Takes what the call holds: the call is over. None: it was abandoned.
    pub(crate) fn end(mut self) -> Option<T> {
        self.try_to_end()
    }

    fn try_to_end(&mut self) -> Option<T> {
        let held = self.held.take()?;
        let held = take(&held);
        if held.is_none() {
            self.abandoned.returned();
        }
        held
    }
}

impl<T> Drop for Working<T> {
    fn drop(&mut self) {
        self.try_to_end();
    }
}

fn take<T>(held: &Mutex<Option<T>>) -> Option<T> {
    held.lock().unwrap_or_else(PoisonError::into_inner).take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_hangs_is_abandoned_to_its_thread_and_counted_until_it_returns() {
        let abandoned = Arc::new(Abandoned::default());
        assert_eq!(abandoned.call("quick", Duration::from_secs(60), || 7).unwrap(), 7);
        assert_eq!((abandoned.total(), abandoned.hanging.load(Ordering::Relaxed)), (0, 0));
        let (wake, sleeps) = channel::<()>();
        let slow = abandoned.call("slow", Duration::from_millis(1), move || sleeps.recv());
        assert!(matches!(slow, Err(CallError::Hangs)));
        assert_eq!((abandoned.total(), abandoned.hanging.load(Ordering::Relaxed)), (1, 1));
        drop(wake);
        while abandoned.hanging.load(Ordering::Relaxed) > 0 {
            std::thread::yield_now();
        }
        assert_eq!(abandoned.total(), 1);
    }

    #[test]
    fn the_timeout_grows_with_each_call_abandoned_until_one_succeeds() {
        let abandoned = Abandoned::default();
        let timeout = || abandoned.statement_timeout().map(|timeout| timeout.as_secs());
        let mut seen = Vec::new();
        for _ in 0..ABANDONED_MAX {
            seen.push(timeout().unwrap());
            abandoned.add();
        }
        assert_eq!(seen[..8], [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(timeout(), None, "as many hang as may");
        abandoned.returned();
        assert_eq!(timeout(), Some(60));
        abandoned.succeeded();
        assert_eq!(timeout(), Some(1), "whatever still hangs, the database answers again");
    }
}
