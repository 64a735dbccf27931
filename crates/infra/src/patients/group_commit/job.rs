//! One request on its way through the queue, and how many there may be at once.

use std::time::Instant;

use intake_domain::{OrganisationId, StoreError};
use intake_metrics::CurrentSpan;
use tokio::sync::oneshot;

use super::queue::InTurn;
use crate::patients::batch::task::{Answer, Request, Task};

/// As many as there may be connections, each of which waits for one answer at a time: half a second of work at full
/// speed.
pub(crate) const QUEUE_LENGTH: usize = 16_384;
/// Large enough for all requests that wait on a busy day, small enough to be stored in a few milliseconds.
pub(crate) const BATCH_MAX: usize = 256;

pub(crate) type Outcome = Result<Answer, StoreError>;

pub(crate) struct Job {
    pub(crate) request: Request,
    pub(crate) deadline: Instant,
    pub(crate) answer: oneshot::Sender<Outcome>,
    /// Another transaction had locked its row when it was last tried.
    pub(crate) is_locked: bool,
}

impl Job {
    /// A job, and where its answer arrives.
    pub(crate) fn new(task: Task, since: Instant, deadline: Instant) -> (Self, oneshot::Receiver<Outcome>) {
        let (answer, answered) = oneshot::channel();
        let request = Request { task, since, was_sent: false, span: CurrentSpan::get() };
        (Self { request, deadline, answer, is_locked: false }, answered)
    }
}

impl InTurn for Job {
    /// `None`: requests whose key is not cached yet share one turn.
    type Owner = Option<OrganisationId>;

    fn owner(&self) -> Self::Owner {
        self.request.holder().map(|holder| holder.organisation_id)
    }
}
