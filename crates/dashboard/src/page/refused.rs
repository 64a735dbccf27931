//! Actions that are refused because of who asks for them, counted by kind, and logged at most once a second for each
//! kind. Neither the log nor the metric names anyone.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use intake_metrics::{Counter, Kind, MetricsText};

/// Between two lines of one kind.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Reason why an action is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The member's role does not allow it.
    Role,
    /// The form does not come from a page of the session.
    FormToken,
    /// Another site asked for it.
    CrossSite,
    /// Someone tried to sign in with an address that no account has.
    UnknownAddress,
    /// Someone came back from the provider of single sign-on whom no account is linked to.
    UnknownAtProvider,
}

struct Noted {
    refusal: Refusal,
    kind: &'static str,
    count: Counter,
    /// Those since the last line of the log.
    unlogged: AtomicU64,
    logged_at: Mutex<Option<Instant>>,
}

impl Noted {
    const fn of(refusal: Refusal, kind: &'static str) -> Self {
        Self { refusal, kind, count: Counter::new(), unlogged: AtomicU64::new(0), logged_at: Mutex::new(None) }
    }

    fn note(&self, now: Instant) {
        self.count.add_one();
        let mut logged_at = self.logged_at.lock().unwrap_or_else(PoisonError::into_inner);
        if logged_at.is_some_and(|logged| now.saturating_duration_since(logged) < LOG_INTERVAL) {
            self.unlogged.fetch_add(1, Ordering::Relaxed);
            return;
        }
        *logged_at = Some(now);
        let suppressed = self.unlogged.swap(0, Ordering::Relaxed);
        tracing::info!(kind = self.kind, suppressed, "an action was refused");
    }
}

static NOTED: [Noted; 5] = [
    Noted::of(Refusal::Role, "role"),
    Noted::of(Refusal::FormToken, "form-token"),
    Noted::of(Refusal::CrossSite, "cross-site"),
    Noted::of(Refusal::UnknownAddress, "unknown-address"),
    Noted::of(Refusal::UnknownAtProvider, "unknown-at-provider"),
];

/// Writes the counters.
pub(crate) fn write_metrics(text: &mut MetricsText) {
    let help = "Actions on the dashboard that were refused because of who asked for them, by kind.";
    let mut family = text.family("intake_refused_actions_total", help, Kind::Counter);
    for noted in &NOTED {
        family.sample(&[("kind", noted.kind)], noted.count.get());
    }
}

/// Counts and logs a refusal.
pub(crate) fn note(refusal: Refusal) {
    NOTED.iter().filter(|noted| noted.refusal == refusal).for_each(|noted| noted.note(Instant::now()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_a_line_a_second_says_how_many_it_left_out() {
        let (noted, start) = (Noted::of(Refusal::Role, "role"), Instant::now());
        for millisecond in 0..2_500 {
            noted.note(start + Duration::from_millis(millisecond));
        }
        assert_eq!((noted.count.get(), noted.unlogged.load(Ordering::Relaxed)), (2_500, 499));
        noted.note(start + Duration::from_secs(9));
        assert_eq!(noted.unlogged.load(Ordering::Relaxed), 0);
    }
}
