//! Events on their way to the target: those that came from the feed, and those that failed and are tried again later.
//! One event of a patient is out at a time, and a patient's events leave in their order.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use intake_domain::PatientId;

use crate::commands::deliver::event::Event;
use crate::commands::deliver::lock::lock;
use crate::export::Stop;

/// Events from the feed that wait. They hold no patient's values.
const WAITING_MAX: usize = 1024;
/// Events that failed or are out. With more, the feed waits: the target is away, or fails for very many.
const FAILED_MAX: usize = 1024;
/// Time after which a request to stop is noticed.
const STOP_INTERVAL: Duration = Duration::from_secs(1);

/// An event, and what was tried so far.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) event: Event,
    /// The delivery's folder has it, so the feed continues without it.
    pub(crate) is_kept: bool,
    pub(crate) failures: u32,
    /// Failures since each of which the target took other events.
    pub(crate) own_failures: u32,
    /// Number of events that the target had taken at the last failure.
    pub(crate) taken_before: u64,
    /// An erasure that was taken, and is sent once more.
    pub(crate) is_repeat: bool,
    /// Time of the next attempt.
    pub(crate) due: Instant,
}

impl Task {
    pub(crate) fn new(event: Event, is_kept: bool) -> Self {
        let due = Instant::now();
        Self { event, is_kept, failures: 0, own_failures: 0, taken_before: 0, is_repeat: false, due }
    }
}

pub(crate) struct Queue {
    parts: Mutex<Parts>,
    changed: Condvar,
    /// Failed events that are tried at a time while others wait.
    retries_max: usize,
}

#[derive(Default)]
struct Parts {
    /// Events from the feed, in its order.
    waiting: VecDeque<Task>,
    failed: Vec<Task>,
    /// Patients whose event is with a worker, each with whether the event had failed before.
    out: Vec<(PatientId, bool)>,
    was_retry: bool,
    quiet_until: Option<Instant>,
}

impl Queue {
    pub(crate) fn new(workers: usize) -> Self {
        Self { parts: Mutex::default(), changed: Condvar::new(), retries_max: workers.div_ceil(2) }
    }

    pub(crate) fn has_room(&self) -> bool {
        lock(&self.parts).waiting.len() < WAITING_MAX
    }

    pub(crate) fn push(&self, event: Event) {
        lock(&self.parts).waiting.push_back(Task::new(event, false));
        self.changed.notify_one();
    }

    /// The next event for a worker, once there is one. None: the delivery is asked to stop.
    pub(crate) fn next(&self, stop: &Stop) -> Option<Task> {
        let mut parts = lock(&self.parts);
        while !stop.is_asked() {
            let now = Instant::now();
            if let Some(task) = parts.pick(now, self.retries_max) {
                parts.out.push((task.event.id, task.is_kept));
                return Some(task);
            }
            let pause = parts.pause(now);
            parts = self.changed.wait_timeout(parts, pause).unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }

    /// Ends an event that was taken or refused, or whose patient was erased.
    pub(crate) fn done(&self, id: PatientId) {
        lock(&self.parts).out.retain(|(out, _)| *out != id);
        self.changed.notify_all();
    }

    /// Returns an event that failed and is kept; returns how many there are.
    pub(crate) fn put_back(&self, task: Task) -> usize {
        let mut parts = lock(&self.parts);
        parts.out.retain(|(out, _)| *out != task.event.id);
        parts.failed.push(task);
        self.changed.notify_all();
        parts.failed.len()
    }

    /// Adds those kept events that are neither waiting for another attempt nor out.
    pub(crate) fn add_kept(&self, events: Vec<Event>) {
        let mut parts = lock(&self.parts);
        for event in events {
            if !parts.has(event.id) {
                parts.failed.push(Task::new(event, true));
            }
        }
        self.changed.notify_all();
    }

    /// Returns whether a kept event of this patient would be new, and there is room for it beside those from the feed.
    pub(crate) fn wants(&self, id: PatientId) -> bool {
        let parts = lock(&self.parts);
        parts.failed.len() < FAILED_MAX / 2 && !parts.has(id)
    }

    /// Drops the failed creation of a patient.
    pub(crate) fn forget(&self, id: PatientId) {
        lock(&self.parts).failed.retain(|task| task.event.id != id || task.event.is_erased);
    }

    /// Holds every event back until then.
    pub(crate) fn be_quiet_until(&self, time: Instant) {
        let mut parts = lock(&self.parts);
        parts.quiet_until = parts.quiet_until.max(Some(time));
    }

    pub(crate) fn end_quiet(&self) {
        lock(&self.parts).quiet_until = None;
        self.changed.notify_all();
    }

    /// Returns whether every event from the feed was taken, refused, or is kept.
    pub(crate) fn is_settled(&self) -> bool {
        let parts = lock(&self.parts);
        parts.waiting.is_empty() && parts.out.iter().all(|(_, is_kept)| *is_kept)
    }
}

impl Parts {
    /// Takes out the event that is next. Events that failed and others take turns, so that neither holds up the other.
    fn pick(&mut self, now: Instant, retries_max: usize) -> Option<Task> {
        if self.quiet_until.is_some_and(|until| now < until) {
            return None;
        }
        let is_out = |task: &Task| self.out.iter().any(|(id, _)| *id == task.event.id);
        let due = self.failed.iter().enumerate().filter(|(_, task)| task.due <= now && !is_out(task));
        let due = due.min_by_key(|(_, task)| task.due).map(|(place, _)| place);
        let has_room = self.failed.len() + self.out.len() < FAILED_MAX;
        let waiting = if has_room { self.waiting.iter().position(|task| !is_out(task)) } else { None };
        let retries = self.out.iter().filter(|(_, is_kept)| *is_kept).count();
        let may_retry = waiting.is_none() || (!self.was_retry && retries < retries_max);
        self.was_retry = may_retry && due.is_some();
        match due {
            Some(place) if may_retry => Some(self.failed.swap_remove(place)),
            _ => waiting.and_then(|place| self.waiting.remove(place)),
        }
    }

    /// Time until a failed event is due, or until a request to stop is looked for.
    fn pause(&self, now: Instant) -> Duration {
        let due = self.failed.iter().map(|task| task.due).filter(|due| *due > now).min();
        let next = if self.quiet_until > Some(now) { self.quiet_until } else { due };
        next.map_or(STOP_INTERVAL, |next| next.saturating_duration_since(now).min(STOP_INTERVAL))
    }

    fn has(&self, id: PatientId) -> bool {
        self.failed.iter().any(|task| task.event.id == id) || self.out.iter().any(|(out, _)| *out == id)
    }
}
