//! Lines of the log that callers can cause: one a second at most, which says how many were left out.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two lines.
const INTERVAL: Duration = Duration::from_secs(1);

/// The pace of one kind of line.
pub struct LogPace(Mutex<Paced>);

struct Paced {
    logged_at: Option<Instant>,
    left_out: u64,
}

impl LogPace {
    /// The pace of a kind of which nothing was logged yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Paced { logged_at: None, left_out: 0 }))
    }

    /// Returns how many lines were left out since the last one, if there may be one again.
    pub fn next(&self, now: Instant) -> Option<u64> {
        let mut paced = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if paced.logged_at.is_some_and(|logged| now.saturating_duration_since(logged) < INTERVAL) {
            paced.left_out += 1;
            return None;
        }
        paced.logged_at = Some(now);
        Some(std::mem::take(&mut paced.left_out))
    }
}

impl Default for LogPace {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_has_a_line_a_second_that_says_how_many_it_left_out() {
        let (pace, start) = (LogPace::new(), Instant::now());
        let lines: Vec<_> =
            (0..2_500).filter_map(|millisecond| pace.next(start + Duration::from_millis(millisecond))).collect();
        assert_eq!(lines, [0, 999, 999]);
        assert_eq!(pace.next(start + Duration::from_secs(9)), Some(499));
    }
}
