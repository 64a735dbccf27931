//! What a request asks of the database, and the answer.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use intake_domain::{CheckedFor, KeyCheck, KeyDigest, KeyHolder, Registered, Registration};
use intake_metrics::CurrentSpan;

/// Task of a request.
#[derive(Clone)]
pub(crate) enum Task {
    /// To create a patient with this holder's key.
    Create(Arc<Registration>, KeyHolder),
    /// To check the holder's key for a request from this address, and why.
    Check(KeyHolder, Option<IpAddr>, CheckedFor),
    /// To look up the holder of a key.
    Find(KeyDigest),
    /// To carry out the statement that would store patients, for none; after a failure, to write something, too, and
    /// take it back.
    Probe,
}

/// The outcome of a task.
pub(crate) enum Answer {
    Registered(Registered),
    Checked(KeyCheck),
    /// None: the key is unknown.
    Found(Option<KeyHolder>),
    Probed,
}

/// One request of a batch.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) task: Task,
    /// Time at which it entered the queue.
    pub(crate) since: Instant,
    /// It was sent to the database before, and no answer has come back.
    pub(crate) was_sent: bool,
    pub(crate) span: CurrentSpan,
}

impl Request {
    /// The patient to store, and the holder of its key.
    pub(crate) fn row(&self) -> Option<(&Registration, KeyHolder)> {
        match &self.task {
            Task::Create(registration, holder) => Some((registration, *holder)),
            Task::Check(..) | Task::Find(_) | Task::Probe => None,
        }
    }

    pub(crate) fn holder(&self) -> Option<KeyHolder> {
        match &self.task {
            Task::Create(_, holder) | Task::Check(holder, ..) => Some(*holder),
            Task::Find(_) | Task::Probe => None,
        }
    }

    /// The address that it came from.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match &self.task {
            Task::Create(registration, _) => registration.caller.address,
            Task::Check(_, address, _) => *address,
            Task::Find(_) | Task::Probe => None,
        }
    }

    pub(crate) fn idempotency_key(&self) -> Option<&str> {
        Some(self.row()?.0.retry.as_ref()?.key.as_str())
    }

    /// Returns whether another transaction may have locked its row: one with the same idempotency key, or an earlier
    /// statement of this service that is still running.
    pub(crate) fn may_be_locked(&self) -> bool {
        self.was_sent || self.idempotency_key().is_some()
    }
}
