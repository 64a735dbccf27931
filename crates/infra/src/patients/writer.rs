//! A writer: a thread that owns one connection, takes all that waits in its queue, and stores it. While the database is
//! away it sends the same batch again and again, which the ids in it make harmless.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use intake_domain::{Source, StoreError};

use crate::database::connect::{CONNECTION_AGE_MAX, OpenConnection, RETRY_PAUSE, connect};
use crate::diesel_errors::without_row_values;
use crate::metrics::{BATCH_ROWS, QUEUE_WAIT, RECONNECTS, STATEMENT};
use crate::patients::batch::{Attempt, Unanswered};
use crate::patients::in_progress::InProgress;
use crate::patients::interruption::{self, Interrupted, Interruption};
use crate::patients::job::{Answer, BATCH_MAX, Job};
use crate::patients::shared::Shared;

/// The statement is planned once per connection, perhaps while the tables are empty: without these settings it would
/// then scan whole tables later on. Citus must know the values to know which nodes it concerns.
const SETTINGS: &str = "SELECT set_config('plan_cache_mode', CASE WHEN to_regproc('citus_version') IS NULL
    THEN 'force_generic_plan' ELSE 'force_custom_plan' END, false); SET enable_seqscan = off; SET jit = off";
/// How long a row with an idempotency key may wait for another transaction with the same key, and its batch with it. An
/// ordinary commit takes far less; where commits are slow, the limit is two of them.
const LOCK_TIMEOUT: Duration = Duration::from_millis(25);
/// The same limit for held rows, which delay only each other.
const HELD_LOCK_TIMEOUT: Duration = Duration::from_millis(10);
/// Between two tries of rows that are all held.
const HELD_PAUSE: Duration = Duration::from_millis(20);
/// Held rows are tried in small batches at first: most of them are free, and the one that is held is found soon.
const HELD_BATCH_MIN: usize = 16;
/// On Citus a statement costs more than its rows do: under load a writer lets some gather first, while others are busy. Alone it would
/// lose a quarter of its rate, as on one PostgreSQL.
const GATHERING: Duration = Duration::from_millis(4);
/// How many requests in the last batch are load.
const GATHERED_MIN: usize = 8;
/// A slow database does not hang: a statement may take this many times the usual before it is left behind.
const SLOWNESS: u32 = 4;

/// The batches that a writer has to store; the first is next.
pub(crate) type Work = VecDeque<Vec<Job>>;

/// Which rows a writer stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Rows that have not been tried yet.
    Usual,
    /// Rows that may have to wait for another transaction.
    Held,
}

pub(crate) struct Writer {
    shared: Arc<Shared>,
    lane: Lane,
    in_progress: Arc<InProgress<Work>>,
    connection: Option<Connected>,
    /// How many held rows are tried together: more as long as none of them is held.
    held_batch: usize,
    /// How many requests the last batch carried.
    last_batch: usize,
}

struct Connected {
    connection: OpenConnection,
    since: Instant,
    lock_timeout: Duration,
    /// Nothing was sent over it yet.
    is_new: bool,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>, lane: Lane, in_progress: Arc<InProgress<Work>>) -> Self {
        Self { shared, lane, in_progress, connection: None, held_batch: HELD_BATCH_MIN, last_batch: 0 }
    }

    /// Works until the queue is closed and empty, or until the writer is left behind.
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
                None => return self.shared.left_behind.came_back(),
            }
        }
    }

    /// Waits for the next batch. None: the queue is closed and empty.
    fn take(&self) -> Option<Work> {
        match self.lane {
            Lane::Usual => {
                if self.last_batch >= GATHERED_MIN && self.shared.are_others_busy() {
                    std::thread::sleep(GATHERING);
                }
                self.shared.take(BATCH_MAX).map(|jobs| self.without_suspects(jobs))
            }
            Lane::Held => self.shared.take_held(self.held_batch).map(after_a_pause_if_all_are_held),
        }
    }

    /// Moves rows that were recently held to the queue of held rows.
    fn without_suspects(&self, jobs: Vec<Job>) -> Work {
        let is_suspect = |job: &Job| job.task.registration().is_some_and(|row| self.shared.suspects.contain(row));
        let (suspects, mut batch): (Vec<_>, Vec<_>) = jobs.into_iter().partition(is_suspect);
        for job in suspects {
            self.push_held(Job { is_held: true, ..job });
        }
        // Two batches with the same idempotency keys lock them in the same order, so that they cannot deadlock.
        batch.sort_by(|one, other| one.idempotency_key().cmp(&other.idempotency_key()));
        Work::from([batch])
    }

    /// Tries one batch and returns the work that is left. None: another writer has taken the work over.
    fn try_batch(&mut self, mut batch: Vec<Job>, mut work: Work) -> Option<Work> {
        let now = Instant::now();
        // Requests past their deadline, or whose client has gone, need no answer any more.
        batch.retain(|job| job.deadline > now && !job.answer.is_closed());
        if batch.is_empty() {
            return Some(work);
        }
        let is_fit = |connected: &Connected| connected.since.elapsed() < CONNECTION_AGE_MAX;
        if !self.connection.as_ref().is_some_and(is_fit) {
            work.push_front(batch);
            return Some(self.connect(work));
        }
        let attempt =
            |job: &mut Job| Attempt { task: job.task.clone(), is_repeated: std::mem::replace(&mut job.was_sent, true) };
        let attempts: Vec<Attempt> = batch.iter_mut().map(attempt).collect();
        let longest_wait = note_waits(&batch, &attempts, now);
        self.last_batch = attempts.len();
        BATCH_ROWS.observe(attempts.len() as u64);
        work.push_front(batch);
        self.in_progress.begin(work, now, self.patience());
        let busy = self.shared.busy();
        let stored = self.store(&attempts);
        drop(busy);
        let took = now.elapsed();
        STATEMENT.observe_time(took);
        tracing::debug!(rows = attempts.len(), is_stored = stored.is_ok(), ?longest_wait, ?took, "a batch was sent");
        let mut work = self.in_progress.finish()?;
        let mut batch = work.pop_front().unwrap_or_default();
        match stored {
            Ok(answers) => {
                self.note_success(took);
                self.answer(batch, &attempts, answers);
            }
            Err(Interrupted { interruption, may_be_stored }) => {
                if !may_be_stored {
                    batch.iter_mut().zip(&attempts).for_each(|(job, attempt)| job.was_sent = attempt.is_repeated);
                }
                self.postpone(interruption, batch, &mut work);
            }
        }
        Some(work)
    }

    /// Connects, which never takes long, and returns all of the work.
    fn connect(&mut self, work: Work) -> Work {
        self.connection = None;
        let lock_timeout = match self.lane {
            Lane::Usual => LOCK_TIMEOUT.max(self.shared.backlog.batch_time() * 2),
            Lane::Held => HELD_LOCK_TIMEOUT,
        };
        let settings = format!("{SETTINGS}; SET lock_timeout = {}", lock_timeout.as_millis());
        // A node that cannot be reached from here may still be reached from others.
        let at_node = self.shared.node().and_then(|node| connect(&node.url?, &settings).ok());
        match at_node.map_or_else(|| connect(&self.shared.url, &settings), Ok) {
            Ok(connection) => {
                self.connection = Some(Connected { connection, since: Instant::now(), lock_timeout, is_new: true });
            }
            Err(error) => self.pause(&error.into(), "the database is away; trying again"),
        }
        work
    }

    /// How long a statement may take before it is left behind.
    fn patience(&self) -> Option<Duration> {
        Some(self.shared.left_behind.patience()?.max(self.shared.backlog.batch_time() * SLOWNESS))
    }

    fn store(&mut self, attempts: &[Attempt]) -> Result<Vec<Result<Answer, Unanswered>>, Interrupted> {
        let Some(Connected { connection, lock_timeout, is_new, .. }) = &mut self.connection else {
            return Err(Interrupted::not_stored(Interruption::Unable("there is no connection".into())));
        };
        if std::mem::take(is_new)
            && let Some(buckets) = self.shared.buckets()
            && let Err(error) = buckets.learn(connection)
        {
            let error = without_row_values(error);
            tracing::debug!(%error, "the shards of the patients cannot be seen");
        }
        interruption::store(connection, attempts, &self.shared, *lock_timeout)
    }

    fn note_success(&mut self, time: Duration) {
        self.shared.left_behind.note_success();
        match self.lane {
            Lane::Usual => self.shared.backlog.note(time),
            Lane::Held => self.held_batch = (self.held_batch * 2).min(BATCH_MAX),
        }
    }

    fn answer(&self, batch: Vec<Job>, attempts: &[Attempt], answers: Vec<Result<Answer, Unanswered>>) {
        if self.shared.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!(node = self.shared.node_name(), "the database is back");
        }
        for ((job, attempt), answer) in batch.into_iter().zip(attempts).zip(answers) {
            let answer = match answer {
                Ok(answer) => Ok(answer),
                Err(Unanswered::Failed(error)) => Err(error),
                Err(Unanswered::Elsewhere(bucket)) => {
                    refuse(bucket.push(Job { was_sent: attempt.is_repeated, ..job }));
                    continue;
                }
            };
            if let Ok(Answer { holder: Some(holder), standing, .. }) = &answer {
                self.shared.uses.note(*holder, *standing, job.task.moment());
            }
            if let Some(row) = job.task.registration().filter(|_| job.is_held) {
                self.shared.suspects.remove(row);
            }
            let _ = job.answer.send(answer);
        }
    }

    /// Decides what is done with a batch that was not stored.
    fn postpone(&mut self, interruption: Interruption, mut batch: Vec<Job>, work: &mut Work) {
        match interruption {
            // The error may be one of the session, so that a new connection helps.
            Interruption::Away(error) => {
                self.reconnect(batch, work);
                self.pause(&error, "the database is away; trying again");
            }
            Interruption::Unable(error) => {
                self.reconnect(batch, work);
                self.pause(&error, "the database refuses to store patients; trying again");
            }
            Interruption::Locked => self.postpone_locked(batch, work),
            Interruption::Refused(error) if batch.len() == 1 => {
                let answer = Err(StoreError::Unexpected(without_row_values(error)));
                batch.into_iter().zip([answer]).for_each(|(job, answer)| drop(job.answer.send(answer)));
            }
            // A faulty row must not fail the others of its batch: halving finds it.
            Interruption::Refused(_) => {
                work.push_front(batch.split_off(batch.len() / 2));
                work.push_front(batch);
            }
            Interruption::Forbidden(error) => {
                for job in batch {
                    let _ = job.answer.send(Err(StoreError::Unexpected(error.to_string().into())));
                }
            }
        }
    }

    fn reconnect(&mut self, batch: Vec<Job>, work: &mut Work) {
        self.connection = None;
        RECONNECTS.add_one();
        work.push_front(batch);
    }

    /// Separates the rows that may be held from the others, so that only they wait.
    fn postpone_locked(&mut self, mut batch: Vec<Job>, work: &mut Work) {
        match self.lane {
            Lane::Usual => {
                let may_be_held = |job: &Job| job.was_sent || job.idempotency_key().is_some();
                let (held, others): (Vec<_>, Vec<_>) = batch.into_iter().partition(may_be_held);
                // Each goes to the front, so the last one goes first to keep their order.
                held.into_iter().rev().for_each(|job| self.push_held(job));
                work.push_front(others);
            }
            Lane::Held if batch.len() > 1 => {
                self.held_batch = HELD_BATCH_MIN;
                batch.into_iter().rev().for_each(|job| work.push_front(vec![job]));
            }
            Lane::Held => {
                if let Some(job) = batch.pop() {
                    job.task.registration().into_iter().for_each(|row| self.shared.suspects.add(row));
                    self.push_held(Job { is_held: true, ..job });
                }
            }
        }
    }

    /// Adds a row to the queue of held rows, or refuses it if there is no room.
    fn push_held(&self, job: Job) {
        refuse(self.shared.push_held(job));
    }

    /// Logs what is wrong, once, and waits a moment.
    fn pause(&self, error: &Source, what: &str) {
        if !self.shared.is_away.swap(true, Ordering::Relaxed) {
            let node = self.shared.node_name();
            tracing::warn!(error = %error, node, "{what}");
        }
        std::thread::sleep(RETRY_PAUSE);
    }
}

/// Answers a job that found no room in a queue.
fn refuse(pushed: Result<(), Job>) {
    if let Err(job) = pushed {
        let _ = job.answer.send(Err(StoreError::Overloaded));
    }
}

/// Counts how long the jobs waited that are sent for the first time, and returns the longest wait.
fn note_waits(batch: &[Job], attempts: &[Attempt], now: Instant) -> Duration {
    let first_sent = batch.iter().zip(attempts).filter(|(_, attempt)| !attempt.is_repeated);
    let waits = first_sent.map(|(job, _)| now.saturating_duration_since(job.since));
    waits.inspect(|wait| QUEUE_WAIT.observe_time(*wait)).max().unwrap_or_default()
}

/// There is no hurry if every row is known to be held.
fn after_a_pause_if_all_are_held(batch: Vec<Job>) -> Work {
    if batch.iter().all(|job| job.is_held) {
        std::thread::sleep(HELD_PAUSE);
    }
    Work::from([batch])
}
