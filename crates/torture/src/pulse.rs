//! When each service last acknowledged a patient, and thus for how long a fault kept it from doing so.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::test_bed::INSTANCES;

const POLL: Duration = Duration::from_millis(2);

/// The pulse of all services.
pub(crate) struct Pulse {
    start: Instant,
    /// For each service, in microseconds since the start: the latest time at which a patient was sent that it
    /// acknowledged.
    sent: [AtomicU64; INSTANCES],
    /// The latest time at which it acknowledged one.
    acknowledged: [AtomicU64; INSTANCES],
    longest: AtomicU64,
}

impl Pulse {
    pub(crate) fn start() -> Self {
        let (sent, acknowledged) = Default::default();
        Self { start: Instant::now(), sent, acknowledged, longest: AtomicU64::new(0) }
    }

    /// A service has acknowledged a patient that was sent at this time.
    pub(crate) fn beat(&self, instance: usize, sent: Instant) {
        let (Some(last_sent), Some(last)) = (self.sent.get(instance), self.acknowledged.get(instance)) else { return };
        last_sent.fetch_max(self.offset(sent), Ordering::Relaxed);
        let now = self.offset(Instant::now());
        let before = last.fetch_max(now, Ordering::Relaxed);
        // Zero: this is the first one.
        if before > 0 {
            self.longest.fetch_max(now.saturating_sub(before), Ordering::Relaxed);
        }
    }

    /// The longest time that a service took from one acknowledgement to the next.
    pub(crate) fn longest(&self) -> Duration {
        Duration::from_micros(self.longest.load(Ordering::Relaxed))
    }

    /// Waits until every service has acknowledged a patient that was sent after `since`, or until that has taken this
    /// long, and returns how long it took.
    pub(crate) fn wait_for_all(&self, since: Instant, patience: Duration) -> Duration {
        let offset = self.offset(since);
        let all_serve = || self.sent.iter().all(|sent| sent.load(Ordering::Relaxed) > offset);
        while !all_serve() && since.elapsed() < patience {
            std::thread::sleep(POLL);
        }
        since.elapsed()
    }

    fn offset(&self, moment: Instant) -> u64 {
        u64::try_from(moment.saturating_duration_since(self.start).as_micros()).unwrap_or(u64::MAX)
    }
}
