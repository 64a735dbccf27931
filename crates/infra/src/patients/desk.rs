//! What a writer is working on, where it can be taken from a writer that hangs. Whoever takes the work has it alone: the
//! writer that comes back to an empty desk knows that it was left behind. Explored exhaustively by `tests/interleavings.rs`.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::sync::Mutex;

pub(crate) struct Desk<W>(Mutex<State<W>>);

enum State<W> {
    /// The writer waits for work, or has it in its hands for a moment.
    Free,
    /// The writer is inside a call that may never return.
    Busy { work: W, until: Option<Instant> },
    /// Another writer has the work.
    LeftBehind,
}

impl<W> Desk<W> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State::Free))
    }

    /// Lays down the work before a call that may never return. It may be taken after so long; none: never.
    pub(crate) fn put(&self, work: W, now: Instant, patience: Option<Duration>) {
        let until = patience.and_then(|patience| now.checked_add(patience));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State::Busy { work, until };
    }

    /// Takes the work up again after the call. None: it was taken, and its writer left behind.
    pub(crate) fn take_up(&self) -> Option<W> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Free) {
            State::Busy { work, .. } => Some(work),
            State::Free | State::LeftBehind => {
                *state = State::LeftBehind;
                None
            }
        }
    }

    /// Whether the call takes longer than it may.
    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(&*state, State::Busy { until: Some(until), .. } if *until <= now)
    }

    /// Takes the work from a writer whose call takes too long.
    pub(crate) fn leave_behind(&self, now: Instant) -> Option<W> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::LeftBehind) {
            State::Busy { work, until: Some(until) } if until <= now => Some(work),
            other => {
                *state = other;
                None
            }
        }
    }
}
