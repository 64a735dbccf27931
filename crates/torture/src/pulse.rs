//! When each service last acknowledged a patient: how long a fault kept it from that.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::arena::INSTANCES;

/// Whoever has not come back after so long will not.
const PATIENCE: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(2);

/// The pulse of all services.
pub(crate) struct Pulse {
    start: Instant,
    /// For each service, in microseconds since the start, the last moment at which a patient was sent that it acknowledged,
    /// and the last one at which it acknowledged any.
    asked: [AtomicU64; INSTANCES],
    told: [AtomicU64; INSTANCES],
    longest: AtomicU64,
}

impl Pulse {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now(), asked: Default::default(), told: Default::default(), longest: AtomicU64::new(0) }
    }

    /// A service has acknowledged a patient that was sent at that moment.
    pub(crate) fn beat(&self, instance: usize, asked: Instant) {
        let (Some(last_asked), Some(last_told)) = (self.asked.get(instance), self.told.get(instance)) else { return };
        last_asked.fetch_max(self.place(asked), Ordering::Relaxed);
        let told = self.place(Instant::now());
        let before = last_told.fetch_max(told, Ordering::Relaxed);
        // Before the first one there was nothing to wait for.
        if before > 0 {
            self.longest.fetch_max(told.saturating_sub(before), Ordering::Relaxed);
        }
    }

    /// The longest time that a service took from one acknowledgement to the next.
    pub(crate) fn longest(&self) -> Duration {
        Duration::from_micros(self.longest.load(Ordering::Relaxed))
    }

    /// Waits until every service has acknowledged a patient that was sent after that moment, and gives how long after it.
    pub(crate) fn wait_for_all(&self, since: Instant) -> Duration {
        let place = self.place(since);
        let all_serve = || self.asked.iter().all(|asked| asked.load(Ordering::Relaxed) > place);
        while !all_serve() && since.elapsed() < PATIENCE {
            std::thread::sleep(POLL);
        }
        since.elapsed()
    }

    fn place(&self, moment: Instant) -> u64 {
        u64::try_from(moment.saturating_duration_since(self.start).as_micros()).unwrap_or(u64::MAX)
    }
}
