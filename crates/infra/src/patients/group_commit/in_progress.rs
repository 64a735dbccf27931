//! The work that a writer is doing, kept where it can be taken over if the writer hangs. Only one thread ever has the
//! work: a writer that finds it gone knows that it was abandoned. Explored exhaustively by `tests/interleavings.rs`.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::locks::Mutex;

pub(crate) struct InProgress<W>(Mutex<State<W>>);

enum State<W> {
    /// The writer has no work, or has it in its own hands.
    Idle,
    /// The writer is inside a call that may never return. Its work may be taken over at `overdue_at`; none: never.
    Busy { work: W, overdue_at: Option<Instant> },
    /// Another writer has the work.
    TakenOver,
}

impl<W> InProgress<W> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State::Idle))
    }

    /// Puts the work here before a call that may never return.
    pub(crate) fn begin(&self, work: W, now: Instant, timeout: Option<Duration>) {
        let overdue_at = timeout.and_then(|timeout| now.checked_add(timeout));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State::Busy { work, overdue_at };
    }

    /// Takes the work back after the call. None: it was taken over and its writer abandoned.
    pub(crate) fn finish(&self) -> Option<W> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Idle) {
            State::Busy { work, .. } => Some(work),
            State::Idle | State::TakenOver => {
                *state = State::TakenOver;
                None
            }
        }
    }

    /// Returns whether the call takes longer than it may.
    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(&*state, State::Busy { overdue_at: Some(overdue_at), .. } if *overdue_at <= now)
    }

    /// Takes the work from a writer whose call is overdue. None: the call is not overdue, or has ended.
    pub(crate) fn take_over(&self, now: Instant) -> Option<W> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::TakenOver) {
            State::Busy { work, overdue_at: Some(overdue_at) } if overdue_at <= now => Some(work),
            other => {
                *state = other;
                None
            }
        }
    }
}
