//! How far a run is, on a terminal. Elsewhere only faults are printed.

use std::io::{Write as _, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// So often a line says that requests have to be sent again.
const WAITING_SHOWN_EVERY: Duration = Duration::from_secs(10);
const REDRAWN_EVERY: Duration = Duration::from_millis(200);

/// A bar that grows with what is read of the file.
pub(crate) struct Progress {
    bar: ProgressBar,
    began: Instant,
    waiting_shown: Mutex<Option<Instant>>,
    is_untold: AtomicBool,
}

impl Progress {
    pub(crate) fn new(size: u64) -> Self {
        let bar = ProgressBar::new(size);
        if let Ok(style) = ProgressStyle::with_template("{bar:32} {percent:>3} %  {msg}, {eta} left") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(REDRAWN_EVERY);
        Self { bar, began: Instant::now(), waiting_shown: Mutex::new(None), is_untold: AtomicBool::new(false) }
    }

    /// The file is done up to here; this many rows are done.
    pub(crate) fn advance(&self, end: u64, rows: u64) {
        // Rows end in another order than they begin.
        self.bar.set_position(self.bar.position().max(end));
        let milliseconds = self.began.elapsed().as_millis().max(1);
        let rate = u128::from(rows) * 1000 / milliseconds;
        self.bar.set_message(format!("{rows} rows, {rate} a second"));
    }

    /// Says why requests are sent again, from time to time.
    pub(crate) fn wait(&self, why: &str) {
        let mut shown = self.waiting_shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.is_none_or(|shown| shown.elapsed() >= WAITING_SHOWN_EVERY) {
            *shown = Some(Instant::now());
            self.print(&format!("{why}; trying again"));
        }
    }

    /// Prints a line above the bar.
    pub(crate) fn print(&self, line: &str) {
        let printed = self.bar.suspend(|| writeln!(stderr(), "{line}"));
        self.is_untold.fetch_or(printed.is_err(), Ordering::Relaxed);
    }

    /// Returns whether a line could not be printed.
    pub(crate) fn is_untold(&self) -> bool {
        self.is_untold.load(Ordering::Relaxed)
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
