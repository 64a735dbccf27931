//! A writer: a thread that owns one connection and stores the requests that wait in its queue. While the database is
//! away it sends the same batch again and again; the ids in the batch make that harmless.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use intake_domain::{Registered, Source, StoreError};

use super::in_progress::InProgress;
use super::job::{BATCH_MAX, Job, Outcome};
use super::lane::{Gather, Lane};
use super::measured::{note_sent, note_statement};
use crate::database::connecting::commit_wait::commit_wait;
use crate::database::connecting::connect::{CONNECT_TIMEOUT, ConnectError, OpenConnection, RETRY_PAUSE};
use crate::database::connecting::lasting::Lasting;
use crate::metrics::RECONNECTS;
use crate::patients::batch::failure::{Cause, Failed};
use crate::patients::batch::store::{settings, store};
use crate::patients::batch::task::{Answer, Request};

/// Time for which a row with an idempotency key, and its whole batch, may wait for another transaction with that key. A
/// usual commit takes far less; where commits are slow, the limit is twice the usual time of a batch.
const LOCK_TIMEOUT: Duration = Duration::from_millis(25);
/// The limit for locked rows, which delay only each other.
const LOCKED_LOCK_TIMEOUT: Duration = Duration::from_millis(10);
/// Pause between two tries of rows that are all locked.
const LOCKED_PAUSE: Duration = Duration::from_millis(20);
/// Locked rows are tried in small batches at first: most are free again, and a small batch soon shows which one is not.
const LOCKED_BATCH_MIN: usize = 16;
/// A statement may take this many times the usual time before it is abandoned, because a slow database does not hang.
const SLOWNESS: u32 = 4;

/// Batches that a writer must store; the first is next.
pub(crate) type Work = VecDeque<Vec<Job>>;

/// Which rows a writer stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Rows that have not been tried yet.
    Untried,
    /// Rows that may have to wait for another transaction.
    Locked,
}

pub(crate) struct Writer {
    lane: Arc<Lane>,
    rows: Rows,
    in_progress: Arc<InProgress<Work>>,
    connection: Lasting<Connected>,
    /// Number of locked rows that are tried together. Grows until one of them is still locked.
    locked_batch: usize,
    /// Number of requests in the last batch.
    last_batch: usize,
}

struct Connected {
    connection: OpenConnection,
    lock_timeout: Duration,
}

impl Writer {
    pub(crate) fn new(lane: Arc<Lane>, rows: Rows, in_progress: Arc<InProgress<Work>>) -> Self {
        Self { lane, rows, in_progress, connection: Lasting::new(), locked_batch: LOCKED_BATCH_MIN, last_batch: 0 }
    }

    /// Works until the queue is closed and empty, or until the writer is abandoned.
    pub(crate) fn run(mut self, mut work: Work) {
        loop {
            if work.is_empty() {
                match self.take() {
                    Some(taken) => work = taken,
                    None => return,
                }
            }
            let left = work.pop_front().map(|batch| self.try_batch(batch, work));
            match left.flatten() {
                Some(rest) => work = rest,
                None => return self.lane.abandoned.returned(),
            }
        }
    }

    /// Waits for the next batch. None: the queue is closed and empty.
    fn take(&self) -> Option<Work> {
        match self.rows {
            Rows::Untried => {
                let gather = self.lane.config.gather.as_ref();
                let is_busy =
                    |gather: &&Gather| self.last_batch >= gather.load && gather.running.load(Ordering::Relaxed) > 0;
                if let Some(gather) = gather.filter(is_busy) {
                    std::thread::sleep(gather.pause);
                }
                self.lane.take(BATCH_MAX).map(|jobs| self.without_locked(jobs))
            }
            Rows::Locked => self.lane.take_locked(self.locked_batch).map(after_a_pause_if_all_are_locked),
        }
    }

    /// Moves rows that were recently locked to the queue of locked rows.
    fn without_locked(&self, jobs: Vec<Job>) -> Work {
        let is_locked_key = |job: &Job| self.lane.locked_keys.contain(&job.request);
        let (locked, mut batch): (Vec<_>, Vec<_>) = jobs.into_iter().partition(is_locked_key);
        for job in locked {
            self.push_locked(Job { is_locked: true, ..job });
        }
        // All batches lock idempotency keys in the same order, so that they cannot deadlock.
        batch.sort_by(|one, other| one.request.idempotency_key().cmp(&other.request.idempotency_key()));
        Work::from([batch])
    }

    /// Tries one batch and returns the remaining work. None: another writer has taken the work over.
    fn try_batch(&mut self, mut batch: Vec<Job>, mut work: Work) -> Option<Work> {
        let now = Instant::now();
        // A request past its deadline, or without a client, needs no answer.
        batch.retain(|job| job.deadline > now && !job.answer.is_closed());
        if batch.is_empty() {
            return Some(work);
        }
        if let Err(error) = self.connect() {
            work.push_front(batch);
            self.pause(&error.into(), "the database is away; trying again");
            return Some(work);
        }
        let requests: Vec<Request> = batch.iter().map(|job| job.request.clone()).collect();
        batch.iter_mut().for_each(|job| job.request.was_sent = true);
        let longest_wait = note_sent(&requests, now);
        self.last_batch = requests.len();
        work.push_front(batch);
        self.in_progress.begin(work, now, self.statement_timeout());
        let stored = self.store(&requests);
        let took = now.elapsed();
        note_statement(&requests, now, took, stored.is_ok(), self.lane.config.place.as_ref());
        tracing::debug!(rows = requests.len(), is_stored = stored.is_ok(), ?longest_wait, ?took, "a batch was sent");
        let mut work = self.in_progress.finish()?;
        let mut batch = work.pop_front().unwrap_or_default();
        match stored {
            Ok(answers) => {
                self.succeeded(took);
                self.answer(batch, answers);
            }
            Err(Failed { cause, may_be_stored }) => {
                if !may_be_stored {
                    batch.iter_mut().zip(requests).for_each(|(job, request)| job.request = request);
                }
                self.postpone(cause, batch, &mut work);
            }
        }
        Some(work)
    }

    /// Opens a connection if there is none. Never takes long.
    fn connect(&mut self) -> Result<(), ConnectError> {
        let (lane, rows) = (Arc::clone(&self.lane), self.rows);
        self.connection.get(CONNECT_TIMEOUT, move || open(&lane, rows)).map(drop)
    }

    /// Returns how long a statement may take before it is abandoned.
    fn statement_timeout(&self) -> Option<Duration> {
        Some(self.lane.abandoned.statement_timeout()?.max(self.lane.backlog.batch_time() * SLOWNESS))
    }

    fn store(&mut self, requests: &[Request]) -> Result<Vec<Outcome>, Failed> {
        let Some(Connected { connection, lock_timeout }) = self.connection.current() else {
            let cause = Cause::Unable("there is no connection".into());
            return Err(Failed { cause, may_be_stored: false });
        };
        let (config, was_away) = (&self.lane.config, self.lane.trouble.is_there());
        if self.lane.abandoned.has_hanging()
            && let Ok(Some(wait)) = commit_wait(connection, config.context.deadline)
        {
            tell(&self.lane, &wait.into(), "a commit hangs in the database");
        }
        let running = config.gather.as_ref().map(|gather| &gather.running);
        running.map(|running| running.fetch_add(1, Ordering::Relaxed));
        let stored = store(connection, requests, &config.context, *lock_timeout, was_away);
        running.map(|running| running.fetch_sub(1, Ordering::Relaxed));
        stored
    }

    fn succeeded(&mut self, time: Duration) {
        self.lane.abandoned.succeeded();
        match self.rows {
            Rows::Untried => self.lane.backlog.note(time),
            Rows::Locked => self.locked_batch = (self.locked_batch * 2).min(BATCH_MAX),
        }
    }

    fn answer(&self, batch: Vec<Job>, answers: Vec<Outcome>) {
        let is_write = |answer: &_| matches!(answer, Ok(Answer::Registered(Registered::Created(_)) | Answer::Probed));
        // A statement that only reads succeeds on a full disk, too.
        if answers.iter().any(is_write) && self.lane.trouble.end(Instant::now()) {
            tracing::info!(node = self.lane.config.place.name(), "the database is back");
        }
        for (job, answer) in batch.into_iter().zip(answers) {
            if job.is_locked {
                self.lane.locked_keys.remove(&job.request);
            }
            let _ = job.answer.send(answer);
        }
    }

    /// Decides what to do with a batch that was not stored.
    fn postpone(&mut self, cause: Cause, mut batch: Vec<Job>, work: &mut Work) {
        match cause {
            Cause::Away(error) => {
                self.connection.close();
                self.retry(batch, work);
                self.pause(&error, "the database is away; trying again");
            }
            Cause::Unable(error) => {
                // The session may cause the error.
                self.connection.doubt();
                self.retry(batch, work);
                self.pause(&error, "the database refuses to store patients; trying again");
            }
            Cause::Locked => self.postpone_locked(batch, work),
            // A faulty row must not fail the rest of its batch: halving finds the row.
            Cause::Refused(_) if batch.len() > 1 => {
                work.push_front(batch.split_off(batch.len() / 2));
                work.push_front(batch);
            }
            Cause::Refused(error) => {
                if let Some(job) = batch.pop() {
                    let _ = job.answer.send(Err(error));
                }
            }
            Cause::Forbidden(error) => {
                for job in batch {
                    let _ = job.answer.send(Err(StoreError::Unexpected(error.clone().into())));
                }
            }
        }
    }

    fn retry(&self, batch: Vec<Job>, work: &mut Work) {
        RECONNECTS.add_one();
        work.push_front(batch);
    }

    /// Separates the rows that may be locked from the others, so that only they wait.
    fn postpone_locked(&mut self, mut batch: Vec<Job>, work: &mut Work) {
        match self.rows {
            Rows::Untried => {
                let (locked, others): (Vec<_>, _) = batch.into_iter().partition(|job| job.request.may_be_locked());
                // Each job is pushed to the front, so pushing the last one first keeps their order.
                locked.into_iter().rev().for_each(|job| self.push_locked(job));
                work.push_front(others);
            }
            Rows::Locked if batch.len() > 1 => {
                self.locked_batch = LOCKED_BATCH_MIN;
                batch.into_iter().rev().for_each(|job| work.push_front(vec![job]));
            }
            Rows::Locked => {
                if let Some(job) = batch.pop() {
                    self.lane.locked_keys.add(&job.request);
                    self.push_locked(Job { is_locked: true, ..job });
                }
            }
        }
    }

    /// Adds a row to the queue of locked rows, or refuses the row if the queue is full.
    fn push_locked(&self, job: Job) {
        if let Err(job) = self.lane.push_locked(job) {
            let _ = job.answer.send(Err(StoreError::Overloaded));
        }
    }

    /// Logs the error, unless it was told, and waits a moment.
    fn pause(&self, error: &Source, what: &str) {
        tell(&self.lane, error, what);
        std::thread::sleep(RETRY_PAUSE);
    }
}

fn tell(lane: &Lane, error: &Source, what: &str) {
    if lane.trouble.note(error, Instant::now()) {
        let node = lane.config.place.name();
        tracing::warn!(error = %error, node, "{what}");
    }
}

fn open(lane: &Lane, rows: Rows) -> Result<Connected, ConnectError> {
    let lock_timeout = match rows {
        Rows::Untried => LOCK_TIMEOUT.max(lane.backlog.batch_time() * 2),
        Rows::Locked => LOCKED_LOCK_TIMEOUT,
    };
    let connection = lane.config.place.connect(&settings(lock_timeout))?;
    Ok(Connected { connection, lock_timeout })
}

/// Waits a moment first if every row is known to be locked.
fn after_a_pause_if_all_are_locked(batch: Vec<Job>) -> Work {
    if batch.iter().all(|job| job.is_locked) {
        std::thread::sleep(LOCKED_PAUSE);
    }
    Work::from([batch])
}
