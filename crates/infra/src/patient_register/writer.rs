//! A writer: a thread that owns one connection, takes all that waits in the queue, and stores it. It rides out a database
//! that is away by sending the same batch again: the ids in it make that harmless.

use std::sync::mpsc::{Receiver, RecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{KeyStanding, StoreError};

use super::backlog::Backlog;
use super::batch::{is_at_fault, store};
use super::{Answer, Job, Wish};
use crate::database::RETRY_PAUSE;
use crate::database_url::DatabaseUrl;
use crate::diesel_errors::{Failure, discreet, failure};
use crate::key_uses::KeyUses;

/// Large enough to share a commit among all who wait on a busy day, small enough to be stored in a few milliseconds.
pub(super) const BATCH_MAX: usize = 256;
/// The statement is planned once for each connection, when tables may still be empty: without this the plan of an empty
/// table would read whole tables later on.
const SETTINGS: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off";

pub(super) struct Writer {
    url: DatabaseUrl,
    uses: KeyUses,
    backlog: Arc<Backlog>,
    connection: Option<PgConnection>,
    /// Whether the database was away at the last try: told once, not at every try.
    is_away: bool,
}

impl Writer {
    pub(super) fn new(url: DatabaseUrl, uses: KeyUses, backlog: Arc<Backlog>) -> Self {
        Self { url, uses, backlog, connection: None, is_away: false }
    }

    /// Works until the register is gone and the queue is empty.
    pub(super) fn run(mut self, jobs: &Mutex<Receiver<Job>>) {
        while let Ok(batch) = take_waiting(jobs) {
            self.store_in_time(batch);
        }
    }

    /// Stores the batch, over and over while the database is away, until every job is answered or out of time.
    fn store_in_time(&mut self, mut batch: Vec<Job>) {
        loop {
            let now = Instant::now();
            // Whoever is out of time, or has gone, has been answered already.
            batch.retain(|job| job.deadline > now && !job.answer.is_closed());
            if batch.is_empty() {
                return;
            }
            let error = match self.try_store(&batch) {
                Ok(answers) => {
                    self.backlog.note(now.elapsed());
                    if std::mem::take(&mut self.is_away) {
                        tracing::info!("the database is back");
                    }
                    return self.tell(batch, answers);
                }
                Err(error) => error,
            };
            match error {
                Interruption::Away(error) => {
                    if !std::mem::replace(&mut self.is_away, true) {
                        tracing::warn!(error = %error, "the database is away; trying again");
                    }
                    self.connection = None;
                    std::thread::sleep(RETRY_PAUSE);
                }
                Interruption::Refused(error) if batch.len() == 1 => {
                    if let Some(job) = batch.pop() {
                        let _ = job.answer.send(Err(StoreError::Unexpected(discreet(error))));
                    }
                    return;
                }
                // One row must never fail its neighbours.
                Interruption::Refused(_) => {
                    let second_half = batch.split_off(batch.len() / 2);
                    self.store_in_time(batch);
                    batch = second_half;
                }
            }
        }
    }

    fn try_store(&mut self, batch: &[Job]) -> Result<Vec<Answer>, Interruption> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(connect(&self.url)?),
        };
        let wishes: Vec<&Wish> = batch.iter().map(|job| &job.wish).collect();
        store(connection, &wishes).map_err(|error| match failure(&error) {
            Failure::Passing => Interruption::Away(discreet(error)),
            Failure::Refused => Interruption::Refused(error),
            Failure::Unclear if is_at_fault(connection, &wishes) => Interruption::Refused(error),
            Failure::Unclear => Interruption::Away(discreet(error)),
        })
    }

    fn tell(&self, batch: Vec<Job>, answers: Vec<Answer>) {
        for (job, answer) in batch.into_iter().zip(answers) {
            if let KeyStanding::Active(holder) = answer.standing {
                self.uses.note(holder, job.wish.moment());
            }
            let _ = job.answer.send(Ok(answer));
        }
    }
}

enum Interruption {
    /// The database cannot be reached, or cannot write: trying again may help.
    Away(intake_domain::Source),
    /// The database refused the batch.
    Refused(diesel::result::Error),
}

/// Waits for a first job, then takes all that wait, never waiting for more.
fn take_waiting(jobs: &Mutex<Receiver<Job>>) -> Result<Vec<Job>, RecvError> {
    let jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
    let mut batch = vec![jobs.recv()?];
    batch.extend(jobs.try_iter().take(BATCH_MAX - 1));
    // Two batches that hold the same keys of safe retry take them in one order, and never wait for each other in a circle.
    batch.sort_by(|one, other| one.safe_retry_key().cmp(&other.safe_retry_key()));
    Ok(batch)
}

fn connect(url: &DatabaseUrl) -> Result<PgConnection, Interruption> {
    let mut connection = PgConnection::establish(url.expose()).map_err(|error| Interruption::Away(error.into()))?;
    connection.batch_execute(SETTINGS).map_err(|error| Interruption::Away(discreet(error)))?;
    Ok(connection)
}
