//! How far an export has got, on a terminal; nothing anywhere else.

use std::io::{IsTerminal, stderr};

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on standard error, gone when dropped.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Shows the progress of this number of steps.
    pub(crate) fn of(steps: u64) -> Self {
        if !stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(steps);
        let form = "{wide_bar} {human_pos} of {human_len} patients, {per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(form) {
            bar.set_style(style);
        }
        Self(bar)
    }

    pub(crate) fn step(&self) {
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
