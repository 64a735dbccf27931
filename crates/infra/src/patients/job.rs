//! One request on its way through the queue, and how many there may be at once.

use std::sync::Arc;
use std::time::Instant;

use intake_domain::{KeyDigest, KeyHolder, KeyStanding, Registered, Registration, StoreError};
use time::OffsetDateTime;
use tokio::sync::oneshot;

/// As many as there may be connections, each of which waits for one answer at a time: half a second of work at full
/// speed.
pub(crate) const QUEUE_LENGTH: usize = 16_384;
/// Large enough for all requests that wait on a busy day, small enough to be stored in a few milliseconds.
pub(crate) const BATCH_MAX: usize = 256;

/// What a request asks for.
#[derive(Clone)]
pub(crate) enum Task {
    /// To create a patient.
    Create(Arc<Registration>),
    /// To look up the standing of its key.
    Check { moment: OffsetDateTime, key: KeyDigest },
    /// The same with a key that nobody has, and to carry out the statement that would store a patient.
    Probe { moment: OffsetDateTime, key: KeyDigest },
}

impl Task {
    pub(crate) fn key(&self) -> &KeyDigest {
        match self {
            Self::Create(registration) => &registration.key,
            Self::Check { key, .. } | Self::Probe { key, .. } => key,
        }
    }

    pub(crate) fn moment(&self) -> OffsetDateTime {
        match self {
            Self::Create(registration) => registration.created_at,
            Self::Check { moment, .. } | Self::Probe { moment, .. } => *moment,
        }
    }

    pub(crate) fn registration(&self) -> Option<&Registration> {
        match self {
            Self::Create(registration) => Some(registration),
            Self::Check { .. } | Self::Probe { .. } => None,
        }
    }
}

/// The outcome of a task.
pub(crate) struct Answer {
    /// The standing of its key.
    pub(crate) standing: KeyStanding,
    /// The holder of its key, whatever the standing is. None: the key is unknown.
    pub(crate) holder: Option<KeyHolder>,
    /// What became of the patient. None for a check, and for a key that was not active.
    pub(crate) registered: Option<Registered>,
}

/// One request on its way through the queue.
pub(crate) struct Job {
    pub(crate) task: Task,
    /// When it entered the queue.
    pub(crate) since: Instant,
    pub(crate) deadline: Instant,
    pub(crate) answer: oneshot::Sender<Result<Answer, StoreError>>,
    /// It was sent to the database, and no answer has come back.
    pub(crate) was_sent: bool,
    /// Another transaction held its row when it was last tried.
    pub(crate) is_held: bool,
}

impl Job {
    pub(crate) fn idempotency_key(&self) -> Option<&str> {
        Some(self.task.registration()?.retry.as_ref()?.key.as_str())
    }
}
