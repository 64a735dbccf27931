//! One lane: where its requests wait, and what its writers share. On one PostgreSQL there is one.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use super::backlog::Backlog;
use super::job::{Job, QUEUE_LENGTH};
use super::locked_keys::LockedKeys;
use super::queue::Queue;
use super::trouble::Trouble;
use crate::abandoned::Abandoned;
use crate::database::connecting::connect::{ConnectError, OpenConnection};
use crate::metrics::WAITING;
use crate::patients::batch::store::Context;

/// Place in which the statements of a lane run.
pub(crate) trait Place: Send + Sync {
    fn connect(&self, settings: &str) -> Result<OpenConnection, ConnectError>;

    /// Its name in the log. None: there is only one.
    fn name(&self) -> Option<String>;
}

/// Settings in which lanes differ.
pub(crate) struct LaneConfig {
    pub(crate) place: Box<dyn Place>,
    pub(crate) context: Context,
    pub(crate) writers: usize,
    pub(crate) gather: Option<Gather>,
}

/// Lets requests gather before a busy writer takes them, where a statement costs more than its rows do.
#[derive(Clone)]
pub(crate) struct Gather {
    pub(crate) pause: Duration,
    /// Number of requests in the last batch that count as load.
    pub(crate) load: usize,
    /// Number of statements that run in all lanes that gather. A lane that runs alone does not gather: it would only
    /// lose time.
    pub(crate) running: Arc<AtomicUsize>,
}

pub(crate) struct Lane {
    pub(crate) config: LaneConfig,
    pub(crate) backlog: Backlog,
    /// Jobs that have not been tried yet.
    untried: Queue<Job>,
    /// Jobs that may have to wait for another transaction: they are tried separately, so that they delay no others.
    locked: Queue<Job>,
    pub(crate) locked_keys: LockedKeys,
    pub(crate) abandoned: Abandoned,
    /// Logged when it begins and ends, not at every try.
    pub(crate) trouble: Trouble,
}

impl Lane {
    pub(crate) fn new(config: LaneConfig) -> Self {
        Self {
            backlog: Backlog::new(config.writers),
            config,
            untried: Queue::new(QUEUE_LENGTH),
            locked: Queue::new(QUEUE_LENGTH),
            locked_keys: LockedKeys::default(),
            abandoned: Abandoned::default(),
            trouble: Trouble::default(),
        }
    }

    /// Puts a job at the end of the queue. Gives it back if there is no room.
    pub(crate) fn push(&self, job: Job) -> Result<(), Job> {
        counted(|| self.untried.push(job))
    }

    /// Puts a job before all others that wait.
    pub(crate) fn push_first(&self, job: Job) -> Result<(), Job> {
        counted(|| self.untried.push_first(job))
    }

    /// Puts a job into the queue of those whose rows may be locked: at its end if the row is known to be, else before
    /// the others.
    pub(crate) fn push_locked(&self, job: Job) -> Result<(), Job> {
        counted(|| if job.is_locked { self.locked.push(job) } else { self.locked.push_first(job) })
    }

    /// Waits for jobs that have not been tried, and takes up to this many. None: the queue is closed and empty.
    pub(crate) fn take(&self, max: usize) -> Option<Vec<Job>> {
        self.untried.take(max).inspect(|jobs| WAITING.subtract(jobs.len()))
    }

    /// The same for jobs whose rows may be locked.
    pub(crate) fn take_locked(&self, max: usize) -> Option<Vec<Job>> {
        self.locked.take(max).inspect(|jobs| WAITING.subtract(jobs.len()))
    }

    /// Accepts no more jobs; those that wait are still stored.
    pub(crate) fn close(&self) {
        self.untried.close();
        self.locked.close();
    }
}

/// Counted before it can be taken.
fn counted(push: impl FnOnce() -> Result<(), Job>) -> Result<(), Job> {
    WAITING.add(1);
    push().inspect_err(|_| WAITING.subtract(1))
}
