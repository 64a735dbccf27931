//! Threads that the service cannot work without: when one of them panics, the program should end and be restarted,
//! instead of continuing without it; when one is stuck, a supervisor should learn of it. A thread that is inside the
//! database is not stuck for that: others watch over it, and a restart would not help.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Time that a thread may take from one sign of life to the next while it is at work: longer than the longest of them
/// takes with all cores busy.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// A thread that waits for work gives no sign of life and need not.
const AT_REST: u64 = 0;

thread_local! {
    static IS_VITAL: Cell<bool> = const { Cell::new(false) };
}

static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
static PULSES: Mutex<Vec<Weak<Signs>>> = Mutex::new(Vec::new());

/// The signs of life of one thread, watched until it is dropped. It is at rest until its first beat.
pub struct Pulse(Arc<Signs>);

struct Signs {
    name: String,
    /// The last one, in milliseconds since the start, counted from 1; or [`AT_REST`].
    last_beat: AtomicU64,
}

impl Pulse {
    /// Watches something that is no thread of its own.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let signs = Arc::new(Signs { name: name.to_owned(), last_beat: AtomicU64::new(AT_REST) });
        let mut pulses = pulses();
        pulses.retain(|pulse| pulse.strong_count() > 0);
        pulses.push(Arc::downgrade(&signs));
        Self(signs)
    }

    /// Lives, and is at work.
    pub fn beat(&self) {
        self.0.last_beat.store(since_start(Instant::now()), Ordering::Relaxed);
    }

    /// Waits for work from here on, for as long as it takes.
    pub fn rest(&self) {
        self.0.last_beat.store(AT_REST, Ordering::Relaxed);
    }
}

/// The name of a thread that has given no sign of life for too long although it is at work. None: all live.
#[must_use]
pub fn stuck_thread() -> Option<String> {
    stuck_at(Instant::now())
}

fn stuck_at(now: Instant) -> Option<String> {
    let stuck = pulses().iter().filter_map(Weak::upgrade).find(|signs| signs.are_missing_at(now));
    stuck.map(|signs| signs.name.clone())
}

impl Signs {
    fn are_missing_at(&self, now: Instant) -> bool {
        let last_beat = self.last_beat.load(Ordering::Relaxed);
        let silence_max = u64::try_from(SILENCE_MAX.as_millis()).unwrap_or(u64::MAX);
        last_beat != AT_REST && since_start(now).saturating_sub(last_beat) > silence_max
    }
}

/// Starts a thread whose panic the program should not survive. It may give signs of life.
pub fn spawn_vital<T: Send + 'static>(
    name: &str,
    builder: Builder,
    work: impl FnOnce(Pulse) -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    let pulse = Pulse::named(name);
    builder.name(name.to_owned()).spawn(|| {
        IS_VITAL.set(true);
        work(pulse)
    })
}

/// Returns whether this thread is vital: asked by the program's panic hook, which runs on the thread that panics.
#[must_use]
pub fn is_vital_thread() -> bool {
    IS_VITAL.get()
}

fn since_start(now: Instant) -> u64 {
    let since_start = now.saturating_duration_since(*STARTED).as_millis();
    u64::try_from(since_start).unwrap_or(u64::MAX).saturating_add(1)
}

fn pulses() -> MutexGuard<'static, Vec<Weak<Signs>>> {
    PULSES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_knows_whether_it_is_vital() {
        assert!(spawn_vital("vital", Builder::new(), |_| is_vital_thread()).unwrap().join().unwrap());
        assert!(!Builder::new().spawn(is_vital_thread).unwrap().join().unwrap());
    }

    #[test]
    fn a_silent_thread_with_work_is_stuck() {
        let pulse = Pulse::named("test of pulses");
        // Other tests have threads, too, so the first that is stuck may be one of theirs.
        let is_stuck = |after| pulse.0.are_missing_at(Instant::now() + after);
        let (soon, late) = (SILENCE_MAX - Duration::from_secs(1), SILENCE_MAX + Duration::from_secs(1));
        assert!(!is_stuck(late), "not at work yet");
        pulse.beat();
        assert!(!is_stuck(soon) && is_stuck(late));
        assert!(stuck_at(Instant::now() + late).is_some());
        pulse.rest();
        assert!(!is_stuck(late), "at rest");
        pulse.beat();
        drop(pulse);
        assert_ne!(stuck_at(Instant::now() + late).as_deref(), Some("test of pulses"), "gone");
    }
}
