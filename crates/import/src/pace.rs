//! How fast requests may be sent: as fast as the service answers, until its headers say that the key's rate is nearly
//! used up or that it wants to be left alone for a while. A reserve of requests is left unused, so that those which are
//! under way together, or come earlier than they were meant to, are not refused.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The pace of all requests together.
pub(crate) struct Pace {
    /// This many requests may be under way at a time, and all of them may arrive at once.
    in_flight: u64,
    turn: Mutex<Turn>,
}

struct Turn {
    /// The next request is not sent before.
    next: Instant,
    /// Time between two requests.
    interval: Duration,
    /// Number of requests that have been sent.
    sent: u64,
    /// Which of them the interval comes from.
    noted: u64,
}

/// Which request is sent, counted from the first one.
#[derive(Clone, Copy)]
pub(crate) struct Ticket(u64);

impl Pace {
    pub(crate) fn new(in_flight: u16) -> Self {
        let turn = Turn { next: Instant::now(), interval: Duration::ZERO, sent: 0, noted: 0 };
        Self { in_flight: in_flight.into(), turn: Mutex::new(turn) }
    }

    /// Waits until the next request may be sent.
    pub(crate) fn wait(&self) -> Ticket {
        let now = Instant::now();
        let (mine, ticket) = {
            let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            let mine = turn.next.max(now);
            turn.next = mine + turn.interval;
            turn.sent += 1;
            (mine, Ticket(turn.sent))
        };
        thread::sleep(mine.saturating_duration_since(now));
        ticket
    }

    /// Lets nobody send for so long.
    pub(crate) fn hold(&self, pause: Duration) {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        turn.next = turn.next.max(Instant::now() + pause);
    }

    /// Notes what the headers `RateLimit-Policy` and `RateLimit` of the answer to a request say.
    pub(crate) fn note(&self, ticket: Ticket, policy: Option<&str>, left: Option<&str>) {
        let (Some(policy), Some(left)) = (policy, left) else { return };
        let (Some(requests), Some(seconds), Some(left)) =
            (parameter(policy, "q"), parameter(policy, "w"), parameter(left, "r"))
        else {
            return;
        };
        let at_rate = Duration::from_secs(seconds).checked_div(u32::try_from(requests).unwrap_or(u32::MAX));
        let at_rate = at_rate.unwrap_or_default();
        let interval = match left {
            // What is under way may not have been counted, and the reserve is to be there after it.
            left if left > 2 * self.in_flight => Duration::ZERO,
            left if left > self.in_flight => at_rate,
            // The reserve is being used up: so much slower that it comes back.
            _ => at_rate + at_rate / 8,
        };
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Answers overtake each other, and what an earlier one says is over.
        if turn.noted < ticket.0 {
            turn.noted = ticket.0;
            turn.interval = interval;
        }
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

    const POLICY: &str = "\"default\";q=1000;w=8";

    fn interval(pace: &Pace) -> Duration {
        pace.turn.lock().unwrap_or_else(PoisonError::into_inner).interval
    }

    #[test]
    fn requests_keep_apart_while_the_rate_is_nearly_used_up() {
        let pace = Pace::new(4);
        let noted = |policy: Option<&str>, left: Option<&str>| {
            pace.note(pace.wait(), policy, left);
            interval(&pace)
        };
        for (left, milliseconds) in [(999, 0), (9, 0), (8, 8), (5, 8), (4, 9), (0, 9), (9, 0)] {
            let left = format!("\"default\";r={left};t=1");
            assert_eq!(noted(Some(POLICY), Some(&left)), Duration::from_millis(milliseconds), "{left}");
        }
        assert_eq!(noted(Some("\"default\";q=0;w=10"), Some("\"default\";r=0")), Duration::ZERO);
        assert_eq!(noted(Some(POLICY), Some("\"default\";r=0;t=10")), Duration::from_millis(9));
        assert_eq!(noted(Some("nonsense"), None), Duration::from_millis(9));
    }

    #[test]
    fn an_answer_that_was_overtaken_changes_nothing() {
        let pace = Pace::new(4);
        let (first, second) = (pace.wait(), pace.wait());
        pace.note(second, Some(POLICY), Some("\"default\";r=3;t=8"));
        pace.note(first, Some(POLICY), Some("\"default\";r=900;t=1"));
        assert_eq!(interval(&pace), Duration::from_millis(9));
    }
}
