//! A request to stop, for work that nobody may interrupt in the middle.

use std::io::{Write as _, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::standard_error::has_room;
use crate::signals::Signals;

/// Time after which a request is noticed.
const INTERVAL: Duration = Duration::from_millis(50);

/// Records whether the program was asked to stop, and whether it has said that the database is away.
#[derive(Clone, Default)]
pub(crate) struct Stop {
    is_asked: Arc<AtomicBool>,
    has_said: Arc<AtomicBool>,
}

impl Stop {
    /// Listens for SIGTERM and Ctrl-C from here on. A second one ends the program at once.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let stop = Self::default();
        let is_asked = Arc::clone(&stop.is_asked);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let mut signals = runtime.block_on(async { Signals::listen() })?;
        let wait = move || {
            runtime.block_on(async {
                signals.next().await;
                is_asked.store(true, Ordering::SeqCst);
                signals.or_stop_at_once(std::future::pending::<()>()).await;
            });
        };
        std::thread::Builder::new().name("signals".into()).spawn(wait)?;
        Ok(stop)
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::SeqCst)
    }

    /// Waits for this long, unless the program is asked to stop. Returns whether it was.
    pub(crate) fn comes_within(&self, time: Duration) -> bool {
        let started = Instant::now();
        while !self.is_asked() {
            let left = time.saturating_sub(started.elapsed());
            if left.is_zero() {
                return false;
            }
            sleep(left.min(INTERVAL));
        }
        true
    }

    /// Says something on standard error, if that takes it, unless it was said before.
    pub(crate) fn say_once(&self, text: &str) {
        if !self.has_said.swap(true, Ordering::SeqCst) && has_room() {
            let _ = writeln!(stderr(), "intake: {text}");
        }
    }

    /// Allows the message to be printed again.
    pub(crate) fn forget_what_was_said(&self) {
        self.has_said.store(false, Ordering::SeqCst);
    }
}
