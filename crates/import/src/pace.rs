//! How fast requests may be sent: as fast as the service answers, until its headers say that the key's rate is nearly used
//! up or that it wants to be left alone for a while.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The pace of all requests together.
pub(crate) struct Pace {
    /// So many requests may be under way when the rate is used up.
    in_flight: u64,
    turn: Mutex<Turn>,
}

struct Turn {
    /// The next request is not sent before.
    next: Instant,
    /// How far requests are apart.
    interval: Duration,
}

impl Pace {
    pub(crate) fn new(in_flight: u16) -> Self {
        let turn = Turn { next: Instant::now(), interval: Duration::ZERO };
        Self { in_flight: in_flight.into(), turn: Mutex::new(turn) }
    }

    /// Waits until the next request may be sent.
    pub(crate) fn wait(&self) {
        let now = Instant::now();
        let mine = {
            let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            let mine = turn.next.max(now);
            turn.next = mine + turn.interval;
            mine
        };
        thread::sleep(mine.saturating_duration_since(now));
    }

    /// Lets nobody send for so long.
    pub(crate) fn hold(&self, pause: Duration) {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        turn.next = turn.next.max(Instant::now() + pause);
    }

    /// Notes what the headers `RateLimit-Policy` and `RateLimit` of an answer say.
    pub(crate) fn note(&self, policy: Option<&str>, left: Option<&str>) {
        let (Some(policy), Some(left)) = (policy, left) else { return };
        let (Some(requests), Some(seconds), Some(left)) =
            (parameter(policy, "q"), parameter(policy, "w"), parameter(left, "r"))
        else {
            return;
        };
        // What is under way has been counted, or will be.
        let is_nearly_used_up = left <= self.in_flight;
        let interval = match Duration::from_secs(seconds).checked_div(u32::try_from(requests).unwrap_or(u32::MAX)) {
            Some(interval) if is_nearly_used_up => interval,
            _ => Duration::ZERO,
        };
        self.turn.lock().unwrap_or_else(PoisonError::into_inner).interval = interval;
    }
}

/// A number among the parameters of a structured field, such as 999 in `"default";r=999;t=1`.
fn parameter(field: &str, name: &str) -> Option<u64> {
    let mut parameters = field.split(';').filter_map(|parameter| parameter.trim().split_once('='));
    parameters.find(|(known, _)| *known == name).and_then(|(_, value)| value.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_keep_apart_while_the_rate_is_nearly_used_up() {
        let pace = Pace::new(4);
        let interval = |left: &str| {
            pace.note(Some("\"default\";q=1000;w=10"), Some(left));
            pace.turn.lock().unwrap_or_else(PoisonError::into_inner).interval
        };
        assert_eq!(interval("\"default\";r=999;t=1"), Duration::ZERO);
        assert_eq!(interval("\"default\";r=4;t=10"), Duration::from_millis(10));
        assert_eq!(interval("\"default\";r=0;t=10"), Duration::from_millis(10));
        assert_eq!(interval("\"default\";r=5;t=10"), Duration::ZERO);
        pace.note(Some("\"default\";q=0;w=10"), Some("\"default\";r=0"));
        pace.note(Some("nonsense"), None);
        assert_eq!(interval("\"default\";r=5;t=10"), Duration::ZERO);
    }
}
