//! How long to wait for a call into the database that may never return: a server that is stopped, or whose disk does not
//! answer, keeps its connections open and says nothing. Such a call cannot be ended, and must not be cancelled (a commit that
//! waits for its standby would then pass for done), so its thread and its connection are left behind.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Far longer than any statement here takes. It is doubled for each call that is left behind, so that a server that takes
/// connections and does nothing over them gets few of them.
const PATIENCE: Duration = Duration::from_secs(1);
const PATIENCE_MAX: Duration = Duration::from_secs(60);
/// At the same time. It takes half an hour of new connections that all hang to get there.
const LEFT_BEHIND_MAX: usize = 32;

/// Counts the calls that were left behind and have not come back.
#[derive(Default)]
pub(crate) struct LeftBehind(AtomicUsize);

impl LeftBehind {
    /// How long the next call may take. None: so many were left behind that one more must come back by itself.
    pub(crate) fn patience(&self) -> Option<Duration> {
        let count = self.0.load(Ordering::Relaxed);
        let doubled = PATIENCE.saturating_mul(2_u32.saturating_pow(u32::try_from(count).unwrap_or(u32::MAX)));
        (count < LEFT_BEHIND_MAX).then(|| doubled.min(PATIENCE_MAX))
    }

    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn came_back(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_grows_with_those_who_were_left_behind_and_shrinks_when_they_come_back() {
        let left_behind = LeftBehind::default();
        let patience = || left_behind.patience().map(|patience| patience.as_secs());
        let mut seen = Vec::new();
        for _ in 0..LEFT_BEHIND_MAX {
            seen.push(patience().unwrap());
            left_behind.add();
        }
        assert_eq!(seen[..8], [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(patience(), None);
        (0..LEFT_BEHIND_MAX).for_each(|_| left_behind.came_back());
        assert_eq!(patience(), Some(1));
    }
}
