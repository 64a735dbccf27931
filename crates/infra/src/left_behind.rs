//! How long to wait for a call into the database that may never return: a server that is stopped, or whose disk does not
//! answer, keeps its connections open and says nothing. Such a call cannot be ended, and must not be cancelled (a commit that
//! waits for its standby would then pass for done), so its thread and its connection are left behind.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

/// Far longer than any statement here takes. It is doubled for each call that is left behind before another one succeeds, so
/// that a server that takes connections and does nothing over them gets few of them.
const PATIENCE: Duration = Duration::from_secs(1);
const PATIENCE_MAX: Duration = Duration::from_secs(60);
/// How many calls may hang at the same time.
const LEFT_BEHIND_MAX: usize = 32;

/// Counts the calls that have been left behind.
#[derive(Default)]
pub(crate) struct LeftBehind {
    /// Calls that have not returned yet.
    hanging: AtomicUsize,
    /// Calls left behind since one last succeeded.
    in_a_row: AtomicU32,
}

impl LeftBehind {
    /// How long the next call may take. None: [`LEFT_BEHIND_MAX`] calls hang, and one of them must return first.
    pub(crate) fn patience(&self) -> Option<Duration> {
        let doubled = PATIENCE.saturating_mul(2_u32.saturating_pow(self.in_a_row.load(Ordering::Relaxed)));
        (self.hanging.load(Ordering::Relaxed) < LEFT_BEHIND_MAX).then(|| doubled.min(PATIENCE_MAX))
    }

    /// Counts a call that is being left behind: before it is certain, so that it cannot return before it was counted.
    pub(crate) fn add(&self) {
        self.hanging.fetch_add(1, Ordering::Relaxed);
        self.in_a_row.fetch_add(1, Ordering::Relaxed);
    }

    /// A call that was counted has returned.
    pub(crate) fn came_back(&self) {
        self.hanging.fetch_sub(1, Ordering::Relaxed);
    }

    /// A call was counted, and turned out to have finished in time.
    pub(crate) fn undo(&self) {
        self.came_back();
        let _ = self.in_a_row.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
    }

    /// Notes that a call succeeded: the database does not hang.
    pub(crate) fn note_success(&self) {
        self.in_a_row.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_grows_with_each_call_left_behind_until_one_succeeds() {
        let left_behind = LeftBehind::default();
        let patience = || left_behind.patience().map(|patience| patience.as_secs());
        let mut seen = Vec::new();
        for _ in 0..LEFT_BEHIND_MAX {
            seen.push(patience().unwrap());
            left_behind.add();
        }
        assert_eq!(seen[..8], [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(patience(), None, "as many hang as may");
        left_behind.came_back();
        assert_eq!(patience(), Some(60));
        left_behind.note_success();
        assert_eq!(patience(), Some(1), "whatever still hangs, the database answers again");
    }
}
