//! A writer: a thread that owns one connection, takes all that waits in its queue, and stores it. It rides out a database
//! that is away by sending the same batch again: the ids in it make that harmless.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use diesel::pg::PgConnection;
use intake_domain::{Source, StoreError};

use crate::database::connect::{RETRY_PAUSE, connect};
use crate::database::schema_error::SchemaError;
use crate::diesel_errors::{Failure, failure, without_row_values};
use crate::patients::batch::{Attempt, Failed, Fault, fault, store};
use crate::patients::crew::Crew;
use crate::patients::desk::Desk;
use crate::patients::job::{Answer, BATCH_MAX, Job};

/// The statement is planned once for each connection, when tables may still be empty: without this the plan of an empty
/// table would read whole tables later on.
const SETTINGS: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off";
/// A row with an idempotency key waits for whoever is storing the same key, and its batch with it. An ordinary commit is
/// done much sooner; where commits are slow, two of them are waited for.
const LOCK_TIMEOUT: Duration = Duration::from_millis(25);
/// The same where nothing is held up but other rows that may have to wait.
const HELD_LOCK_TIMEOUT: Duration = Duration::from_millis(10);
/// Between two tries of rows that are all held.
const HELD_PAUSE: Duration = Duration::from_millis(20);
/// Rows tried apart go in small batches at first: most of them are innocent, and the guilty one is found soon.
const APART_MIN: usize = 16;
/// What a connection has asserted may change while it is open. Making another takes a few milliseconds.
const CONNECTION_AGE_MAX: Duration = Duration::from_secs(60);
/// A database that is slow is not one that hangs: a statement may take so many times the usual.
const SLOWNESS: u32 = 4;

/// What a writer does: batches, of which the first is next.
pub(crate) type Work = VecDeque<Vec<Job>>;

/// Which rows a writer stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Those that nobody has tried yet.
    Usual,
    /// Those that may have to wait for somebody else's transaction.
    Held,
}

pub(crate) struct Writer {
    crew: Arc<Crew>,
    lane: Lane,
    desk: Arc<Desk<Work>>,
    connection: Option<Connected>,
    /// How many rows that are tried apart go together: more as long as that goes well.
    apart: usize,
}

struct Connected {
    connection: PgConnection,
    since: Instant,
    lock_timeout: Duration,
}

/// Why a batch was not stored.
enum Interruption {
    /// The database cannot be reached, or cannot write: trying again may help.
    Away(Source),
    /// The same of a statement that has done nothing.
    Unable(Source),
    /// Somebody else's transaction holds a row, or the table.
    Locked,
    /// The database refused the batch.
    Refused(diesel::result::Error),
    /// The database would refuse any batch.
    Forbidden(SchemaError),
}

/// An interruption, and whether the rows may be stored all the same.
struct Interrupted(Interruption, bool);

impl Writer {
    pub(crate) fn new(crew: Arc<Crew>, lane: Lane, desk: Arc<Desk<Work>>) -> Self {
        Self { crew, lane, desk, connection: None, apart: APART_MIN }
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
                None => return self.crew.left_behind.came_back(),
            }
        }
    }

    /// What is to be done next. None: the queue is closed and empty.
    fn take(&self) -> Option<Work> {
        match self.lane {
            Lane::Usual => self.crew.queue.take(BATCH_MAX).map(|jobs| self.without_suspects(jobs)),
            Lane::Held => self.crew.held.take(self.apart).map(after_a_pause_if_all_are_held),
        }
    }

    /// Rows that are known to be held go to those that are tried apart.
    fn without_suspects(&self, jobs: Vec<Job>) -> Work {
        let is_suspect = |job: &Job| job.task.registration().is_some_and(|row| self.crew.suspects.contain(row));
        let (suspects, mut batch): (Vec<_>, Vec<_>) = jobs.into_iter().partition(is_suspect);
        for job in suspects {
            self.set_apart(Job { is_held: true, ..job });
        }
        // Two batches that hold the same idempotency keys take them in one order, and do not wait for each other in a circle.
        batch.sort_by(|one, other| one.idempotency_key().cmp(&other.idempotency_key()));
        Work::from([batch])
    }

    /// Tries one batch, and gives what is left to do. None: the work was taken by another writer meanwhile.
    fn try_batch(&mut self, mut batch: Vec<Job>, mut work: Work) -> Option<Work> {
        let now = Instant::now();
        // Whoever is out of time, or has gone, has been answered already.
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
        work.push_front(batch);
        self.desk.put(work, now, self.patience());
        let stored = self.store(&attempts);
        let mut work = self.desk.take_up()?;
        let mut batch = work.pop_front().unwrap_or_default();
        match stored {
            Ok(answers) => {
                self.note_success(now.elapsed());
                self.tell(batch, answers);
            }
            Err(Interrupted(interruption, may_be_stored)) => {
                if !may_be_stored {
                    batch.iter_mut().zip(&attempts).for_each(|(job, attempt)| job.was_sent = attempt.is_repeated);
                }
                self.put_off(interruption, batch, &mut work);
            }
        }
        Some(work)
    }

    /// Connects, which never takes long, and gives what is left to do: all of it.
    fn connect(&mut self, work: Work) -> Work {
        self.connection = None;
        let lock_timeout = match self.lane {
            Lane::Usual => LOCK_TIMEOUT.max(self.crew.backlog.batch_time() * 2),
            Lane::Held => HELD_LOCK_TIMEOUT,
        };
        match connect(&self.crew.url, &format!("{SETTINGS}; SET lock_timeout = {}", lock_timeout.as_millis())) {
            Ok(connection) => {
                self.connection = Some(Connected { connection, since: Instant::now(), lock_timeout });
            }
            Err(error) => self.pause(&error.into()),
        }
        work
    }

    /// How long a statement may take before it is left behind.
    fn patience(&self) -> Option<Duration> {
        Some(self.crew.left_behind.patience()?.max(self.crew.backlog.batch_time() * SLOWNESS))
    }

    fn store(&mut self, attempts: &[Attempt]) -> Result<Vec<Result<Answer, StoreError>>, Interrupted> {
        let Some(Connected { connection, lock_timeout, .. }) = &mut self.connection else {
            return Err(Interrupted(Interruption::Unable("there is no connection".into()), false));
        };
        let started = Instant::now();
        store(connection, attempts).map_err(|Failed { error, is_stored }| {
            // Diesel tells a lock that was not had in time from nothing else: it shows in how long that took.
            let took_long = started.elapsed() >= *lock_timeout;
            let is_locked = took_long && attempts.iter().any(Attempt::may_be_held);
            let interruption = match failure(&error) {
                Failure::Transient => return Interrupted(Interruption::Away(without_row_values(error)), true),
                Failure::Refused => Interruption::Refused(error),
                // Whoever is at fault shows when the rows are tried apart.
                Failure::Unknown if is_locked && attempts.len() > 1 => Interruption::Locked,
                Failure::Unknown => match fault(connection, attempts, *lock_timeout) {
                    Fault::Batch => Interruption::Refused(error),
                    Fault::Grants(missing) => Interruption::Forbidden(missing),
                    Fault::Neither if is_locked => Interruption::Locked,
                    Fault::Neither => Interruption::Unable(without_row_values(error)),
                },
            };
            Interrupted(interruption, is_stored)
        })
    }

    fn note_success(&mut self, time: Duration) {
        self.crew.left_behind.note_success();
        match self.lane {
            Lane::Usual => self.crew.backlog.note(time),
            Lane::Held => self.apart = (self.apart * 2).min(BATCH_MAX),
        }
    }

    fn tell(&self, batch: Vec<Job>, answers: Vec<Result<Answer, StoreError>>) {
        if self.crew.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!("the database is back");
        }
        for (job, answer) in batch.into_iter().zip(answers) {
            if let Ok(Answer { holder: Some(holder), standing, .. }) = &answer {
                self.crew.uses.note(job.task.key(), *holder, *standing, job.task.moment());
            }
            if let Some(row) = job.task.registration().filter(|_| job.is_held) {
                self.crew.suspects.remove(row);
            }
            let _ = job.answer.send(answer);
        }
    }

    /// What is done with a batch that was not stored.
    fn put_off(&mut self, interruption: Interruption, mut batch: Vec<Job>, work: &mut Work) {
        match interruption {
            // An error may be one of the session alone, so that another one helps.
            Interruption::Away(error) | Interruption::Unable(error) => {
                self.connection = None;
                work.push_front(batch);
                self.pause(&error);
            }
            Interruption::Locked => self.put_off_locked(batch, work),
            Interruption::Refused(error) if batch.len() == 1 => {
                let answer = Err(StoreError::Unexpected(without_row_values(error)));
                batch.into_iter().zip([answer]).for_each(|(job, answer)| drop(job.answer.send(answer)));
            }
            // One row must never fail its neighbours.
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

    /// Nobody waits for a row that somebody else holds but those who sent it.
    fn put_off_locked(&mut self, mut batch: Vec<Job>, work: &mut Work) {
        match self.lane {
            Lane::Usual => {
                let may_be_held = |job: &Job| job.was_sent || job.idempotency_key().is_some();
                let (held, others): (Vec<_>, Vec<_>) = batch.into_iter().partition(may_be_held);
                // The first shall be the first there, too.
                held.into_iter().rev().for_each(|job| self.set_apart(job));
                work.push_front(others);
            }
            Lane::Held if batch.len() > 1 => {
                self.apart = APART_MIN;
                batch.into_iter().rev().for_each(|job| work.push_front(vec![job]));
            }
            Lane::Held => {
                if let Some(job) = batch.pop() {
                    job.task.registration().into_iter().for_each(|row| self.crew.suspects.add(row));
                    self.set_apart(Job { is_held: true, ..job });
                }
            }
        }
    }

    /// Lets a row wait where it holds up nobody: behind those that are known to be held, or before them.
    fn set_apart(&self, job: Job) {
        let queue = &self.crew.held;
        let pushed = if job.is_held { queue.push(job) } else { queue.push_first(job) };
        if let Err(job) = pushed {
            let _ = job.answer.send(Err(StoreError::Overloaded));
        }
    }

    /// Says once that the database is away, and waits a moment.
    fn pause(&self, error: &Source) {
        if !self.crew.is_away.swap(true, Ordering::Relaxed) {
            tracing::warn!(error = %error, "the database is away; trying again");
        }
        std::thread::sleep(RETRY_PAUSE);
    }
}

/// Without a row that is new here there is no hurry.
fn after_a_pause_if_all_are_held(batch: Vec<Job>) -> Work {
    if batch.iter().all(|job| job.is_held) {
        std::thread::sleep(HELD_PAUSE);
    }
    Work::from([batch])
}
