//! The thread that writes what [`KeyUses`] gathers, and sets the end of keys that have been replaced. It writes in
//! parts, each small enough to finish in time, and never waits for a database that hangs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::KeyHolder;

use crate::abandoned::Abandoned;
use crate::database::cluster::nodes::connect_to_all;
use crate::database::cluster::parts::parts;
use crate::database::cluster::shards::Shards;
use crate::database::connecting::connect::{CONNECT_TIMEOUT, OpenConnection};
use crate::database::connecting::lasting::Lasting;
use crate::database::connecting::url::DatabaseUrl;
use crate::diesel_errors::{Failure, failure};
use crate::keys::activity::answers::write_answers;
use crate::keys::activity::clients::write_clients;
use crate::keys::activity::refusals::write_refusals;
use crate::keys::activity::uses::{KeyUses, mark_sent_in_clear, write_uses};
use crate::keys::directory::{KeyDirectory, home};
use crate::metrics::{RECONNECTS, SWEEP_FAILURES, note_error};
use crate::sweep::Sweep;
use crate::vital_thread::{Pulse, spawn_vital};

/// Time between two looks for what is due: a first use shows up this soon.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// Counts of answers, clients and refusals are written once in this many intervals: nobody waits for them.
const ANSWERS_EVERY: u64 = 5;
/// Rows in one statement: even a slow database writes them in a fraction of the time-out.
const PART_MAX: usize = 1_000;
/// Short time-outs: a lock that someone else holds on these tables is not waited for.
/// Citus writes one shard after the other, so that two services never deadlock; elsewhere that setting means nothing.
const SETTINGS: &str = "SET lock_timeout = '2s'; SET statement_timeout = '4s';
    SET citus.multi_shard_modify_mode = 'sequential'";
/// A statement that takes longer than this hangs: a server that runs would have ended it.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(6);
/// Time for which a service that stops waits for the last write.
const LAST_WRITE_TIMEOUT: Duration = Duration::from_secs(3);

/// The handle of the thread, which stops when this is dropped.
pub struct KeyUseWriter {
    stop: Sender<()>,
    /// Closed when everything has been written, or given up.
    ended: Receiver<()>,
}

impl KeyUseWriter {
    /// Starts the thread. `instance` is the name of this service among others.
    pub fn start(url: DatabaseUrl, directory: KeyDirectory, uses: KeyUses, instance: String) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let (alive, ended) = channel();
        let work = move |pulse| {
            let _alive = alive;
            let connection = Lasting::new();
            let (abandoned, instance) = (Arc::default(), instance.into());
            let mut writing = Writing { url, pulse, connection, abandoned, instance, is_failing: false };
            let mut ticks = 0_u64;
            let mut sweep = Sweep::new();
            loop {
                writing.pulse.beat();
                let is_end = stopped.recv_timeout(WRITE_INTERVAL) != Err(RecvTimeoutError::Timeout);
                ticks += 1;
                writing.write_all(&directory, &uses, is_end, is_end || ticks.is_multiple_of(ANSWERS_EVERY));
                if is_end {
                    return;
                }
                if let Err(error) = writing.remove(&mut sweep) {
                    SWEEP_FAILURES.add_one();
                    tracing::warn!(%error, "expired rows could not be deleted; the next sweep tries again");
                }
            }
        };
        spawn_vital("key-uses", std::thread::Builder::new(), work)?;
        Ok(Self { stop, ended })
    }
}

impl Drop for KeyUseWriter {
    /// Writes what is left, if that can be done in time.
    fn drop(&mut self) {
        let _ = self.stop.send(());
        if self.ended.recv_timeout(LAST_WRITE_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!(
                "the last uses of keys and counts of answers could not be written: the database does not answer"
            );
        }
    }
}

struct Writing {
    url: DatabaseUrl,
    pulse: Pulse,
    connection: Lasting<OpenConnection>,
    abandoned: Arc<Abandoned>,
    instance: Arc<str>,
    /// Logged once, not at every try. While it lasts, no replaced key ends.
    is_failing: bool,
}

impl Writing {
    fn write_all(&mut self, directory: &KeyDirectory, uses: &KeyUses, is_end: bool, has_answers: bool) {
        let mut outcome = Outcome::default();
        for (shard, unknown) in directory.shards.group(uses.unknown(), home) {
            for part in unknown.chunks(PART_MAX) {
                let (known, keys) = (directory.clone(), part.to_vec());
                if self.write(&mut outcome, shard, move |connection| known.learn(connection, &keys)) {
                    uses.sort(part, directory);
                }
            }
        }
        let shards = &directory.shards;
        let due = uses.due(is_end);
        let used: Vec<_> = due.iter().filter(|_| !is_end).map(|(holder, _)| *holder).collect();
        self.write_rows(&mut outcome, shards, due, write_uses, |part| uses.give_back(part));
        for (shard, used) in shards.group(used, |holder| *holder.organisation_id.as_uuid()) {
            for part in used.chunks(PART_MAX) {
                let (known, part) = (directory.clone(), part.to_vec());
                // What fails comes with the next use.
                self.write(&mut outcome, shard, move |connection| known.learn_ends(connection, &part));
            }
        }
        let sent = uses.take_sent_in_clear();
        self.write_rows(&mut outcome, shards, sent, mark_sent_in_clear, |part| uses.give_back_sent_in_clear(part));
        if has_answers {
            let answers = &uses.answers;
            self.write_rows(&mut outcome, shards, answers.take(), write_answers, |part| answers.give_back(part));
            let clients = answers.take_clients();
            self.write_rows(&mut outcome, shards, clients, write_clients, |part| answers.give_back_clients(part));
            let refused = uses.take_refused();
            let instance = Arc::clone(&self.instance);
            let write = move |connection: &mut PgConnection, part: &[_]| write_refusals(connection, part, &instance);
            self.write_rows(&mut outcome, shards, refused, write, |part| uses.give_back_refused(part));
        }
        self.log(&outcome, uses.answers.take_dropped(), is_end);
    }

    /// Writes the rows of each shard apart, so that a node that is away delays only its own.
    fn write_rows<T: Clone + Send + 'static>(
        &mut self,
        outcome: &mut Outcome,
        shards: &Shards,
        rows: Vec<(KeyHolder, T)>,
        work: impl Fn(&mut PgConnection, &[(KeyHolder, T)]) -> QueryResult<()> + Clone + Send + 'static,
        give_back: impl Fn(&[(KeyHolder, T)]),
    ) {
        for (shard, rows) in shards.group(rows, |(holder, _)| *holder.organisation_id.as_uuid()) {
            for part in rows.chunks(PART_MAX) {
                let (rows, work) = (part.to_vec(), work.clone());
                if !self.write(outcome, shard, move |connection| work(connection, &rows)) {
                    give_back(part);
                }
            }
        }
    }

    /// Does the work, unless earlier work for the same shard has failed. Returns whether it was done.
    fn write(
        &mut self,
        outcome: &mut Outcome,
        shard: Option<usize>,
        work: impl FnOnce(&mut PgConnection) -> QueryResult<()> + Send + 'static,
    ) -> bool {
        if outcome.failed.contains(&shard) || outcome.failed.contains(&None) {
            return false;
        }
        match self.within_timeout(work) {
            Ok(()) => outcome.is_written = true,
            Err(error) => {
                outcome.failed.insert(shard);
                outcome.error.get_or_insert(error);
                return false;
            }
        }
        true
    }

    /// Removes one batch of what is over, if a sweep is due.
    fn remove(&mut self, sweep: &mut Sweep) -> Result<(), anyhow::Error> {
        if sweep.is_due() {
            let parts = self.within_timeout(parts).inspect_err(|_| sweep.put_off())?;
            sweep.begin(&parts);
        }
        let Some(removal) = sweep.next() else { return Ok(()) };
        let next = removal.clone();
        let removed = self.within_timeout(move |connection| next.run(connection));
        sweep.note(&removal, removed.as_ref().ok().copied());
        removed.map(drop)
    }

    /// Does the work on a thread of its own, which is abandoned with its connection if it hangs.
    fn within_timeout<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut PgConnection) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, anyhow::Error> {
        self.pulse.beat();
        let url = self.url.clone();
        let mut connection = std::mem::replace(&mut self.connection, Lasting::new());
        let (connection, done) = self.abandoned.call("key-uses-write", STATEMENT_TIMEOUT, move || {
            let done = run_over(&mut connection, url, work);
            (connection, done)
        })?;
        self.connection = connection;
        done.inspect(|_| self.abandoned.succeeded())
    }

    fn log(&mut self, outcome: &Outcome, dropped: usize, is_end: bool) {
        match &outcome.error {
            Some(error) if is_end => {
                tracing::warn!(%error, "the last uses of keys and counts of answers could not be written");
            }
            Some(error) if !std::mem::replace(&mut self.is_failing, true) => {
                tracing::warn!(
                    %error,
                    "the use of keys cannot be saved, so replaced keys stay valid for now; trying again"
                );
            }
            None if outcome.is_written && std::mem::take(&mut self.is_failing) => {
                tracing::info!("the use of keys is saved again");
            }
            _ => {}
        }
        if dropped > 0 {
            tracing::warn!(dropped, "counts of answers were dropped: the buffer is full");
        }
    }
}

fn run_over<T>(
    connection: &mut Lasting<OpenConnection>,
    url: DatabaseUrl,
    work: impl FnOnce(&mut PgConnection) -> QueryResult<T>,
) -> Result<T, anyhow::Error> {
    let done = work(connection.get(CONNECT_TIMEOUT, move || connect_to_all(&url, SETTINGS))?);
    if let Err(error) = &done {
        note_error(error);
        RECONNECTS.add_one();
        match failure(error) {
            Failure::Transient => connection.close(),
            Failure::Refused | Failure::Unknown => connection.doubt(),
        }
    }
    Ok(done?)
}

/// Outcome of the writes of one interval.
#[derive(Default)]
struct Outcome {
    is_written: bool,
    /// The shards whose rows could not be written; none: those of one PostgreSQL.
    failed: BTreeSet<Option<usize>>,
    /// The first failure.
    error: Option<anyhow::Error>,
}
