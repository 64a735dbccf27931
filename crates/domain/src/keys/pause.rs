//! Outcomes of pausing a key and of resuming it.

use time::OffsetDateTime;

/// Outcome of the pause of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum PauseOutcome {
    /// The key was paused by this call.
    Paused {
        /// Time of the pause, by the store's clock.
        at: OffsetDateTime,
    },
    /// The key had been paused before; nothing was recorded.
    AlreadyPaused {
        /// Time of that pause.
        at: OffsetDateTime,
    },
}

/// Outcome of the resumption of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum ResumeOutcome {
    /// The key was resumed by this call.
    Resumed,
    /// The key was not paused; nothing was recorded.
    NotPaused,
}
