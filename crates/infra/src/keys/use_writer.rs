//! The thread that writes what [`KeyUses`] gathers, and sets the end of keys that have been replaced. It writes in parts,
//! each small enough to finish in time, and never waits for a database that hangs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::Context;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{Array, BigInt, Date as SqlDate, Integer, Text, Timestamptz, Uuid as SqlUuid};
use intake_domain::{KeyDigest, KeyHolder, Refusal};
use time::{OffsetDateTime, UtcOffset};

use crate::database::connect::{OpenConnection, connect};
use crate::database::url::DatabaseUrl;
use crate::keys::answers::Counted;
use crate::keys::homes::KeyHomes;
use crate::keys::refusals::write_refusals;
use crate::keys::uses::{KeyUses, SentInClear, UPGRADE_REQUIRED, ids};
use crate::left_behind::LeftBehind;
use crate::metrics::{RECONNECTS, note_error};
use crate::sweep::Sweep;
use crate::vital_thread::{Pulse, spawn_vital};

/// How often to look for what is due: a first use shows up this soon.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// Counts of answers, and refusals, are written once in this many intervals: nobody waits for them.
const ANSWERS_EVERY: u64 = 5;
/// Rows in one statement: even a slow database writes them in a fraction of the time-out.
const PART_MAX: usize = 1_000;
/// Short time-outs: a lock that someone else holds on these tables is not waited for.
/// Citus writes one shard after the other, so that two services never deadlock; elsewhere that setting means nothing.
const SETTINGS: &str = "SET lock_timeout = '2s'; SET statement_timeout = '4s';
    SET citus.multi_shard_modify_mode = 'sequential'";
/// A statement that takes longer than this hangs: a server that runs would have ended it.
const PATIENCE: Duration = Duration::from_secs(6);
/// How long a service that stops waits for the last write.
const LAST_WRITE_TIMEOUT: Duration = Duration::from_secs(3);

/// The handle of the thread, which stops when this is dropped.
pub struct KeyUseWriter {
    stop: Sender<()>,
    /// Closed when everything has been written, or given up.
    ended: Receiver<()>,
}

impl KeyUseWriter {
    /// Starts the thread.
    pub fn start(url: DatabaseUrl, uses: KeyUses) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let (alive, ended) = channel();
        let work = move |pulse| {
            let _alive = alive;
            let mut writing = Writing { url, pulse, connection: None, left_behind: Arc::default(), is_failing: false };
            let mut ticks = 0_u64;
            let mut sweep = Sweep::new();
            loop {
                writing.pulse.beat();
                let is_end = stopped.recv_timeout(WRITE_INTERVAL) != Err(RecvTimeoutError::Timeout);
                ticks += 1;
                writing.write_all(&uses, is_end, is_end || ticks.is_multiple_of(ANSWERS_EVERY));
                if is_end {
                    return;
                }
                let remove = |statement| writing.within_patience(|connection| sql_query(statement).execute(connection));
                if let Err(error) = sweep.step(remove) {
                    tracing::warn!(%error, "what is over could not be removed; the next sweep tries again");
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
    connection: Option<OpenConnection>,
    left_behind: Arc<LeftBehind>,
    /// Logged once, not at every try. While it lasts, no replaced key ends.
    is_failing: bool,
}

impl Writing {
    fn write_all(&mut self, uses: &KeyUses, is_end: bool, has_answers: bool) {
        let mut outcome = Outcome::default();
        let used = uses.shards.group(uses.due(is_end), |(holder, _)| holder.organisation_id);
        self.write_groups(&mut outcome, used, write_uses, |part| uses.give_back(part));
        let mut dropped = 0;
        let (sent, refused) = uses.take_sent_in_clear();
        for part in sent.chunks(PART_MAX) {
            let keys: HashSet<KeyDigest> = part.iter().map(|(key, _)| *key).collect();
            let refused: Vec<_> = refused.iter().filter(|(key, _)| keys.contains(key)).cloned().collect();
            let homes = uses.homes.clone();
            let find = move |connection: &mut PgConnection| homes.learn(connection, &keys);
            let is_known = self.write(&mut outcome, None, find);
            if is_known {
                let found = with_holders(&uses.homes, part, &refused);
                let found = uses.shards.group(found, |sent| sent.holder.organisation_id);
                self.write_groups(&mut outcome, found, write_sent_in_clear, |part| {
                    for SentBy { key, sent, refused, .. } in part {
                        let refused: Vec<_> = refused.iter().map(|refusal| (*key, refusal.clone())).collect();
                        dropped += uses.give_back_sent_in_clear(&[(*key, *sent)], &refused);
                    }
                });
            } else {
                dropped += uses.give_back_sent_in_clear(part, &refused);
            }
        }
        if has_answers {
            let answers = uses.shards.group(uses.answers.take(), |((holder, ..), _)| holder.organisation_id);
            self.write_groups(&mut outcome, answers, write_answers, |part| uses.answers.give_back(part));
            let refused = uses.shards.group(uses.take_refused(), |(holder, _)| holder.organisation_id);
            self.write_groups(&mut outcome, refused, write_refusals, |part| uses.give_back_refused(part));
        }
        self.log(&outcome, dropped + uses.answers.take_dropped(), is_end);
    }

    /// Writes the rows of each shard apart, so that a node that is away delays only its own.
    fn write_groups<T: Clone + Send + 'static>(
        &mut self,
        outcome: &mut Outcome,
        groups: BTreeMap<Option<usize>, Vec<T>>,
        work: fn(&mut PgConnection, &[T]) -> QueryResult<()>,
        mut give_back: impl FnMut(&[T]),
    ) {
        for (shard, rows) in groups {
            for part in rows.chunks(PART_MAX) {
                let rows = part.to_vec();
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
        match self.within_patience(work) {
            Ok(()) => outcome.is_written = true,
            Err(error) => {
                outcome.failed.insert(shard);
                outcome.error.get_or_insert(error);
                return false;
            }
        }
        true
    }

    /// Does the work on a thread of its own, which is left behind with its connection if it hangs.
    fn within_patience<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut PgConnection) -> QueryResult<T> + Send + 'static,
    ) -> Result<T, anyhow::Error> {
        self.pulse.beat();
        anyhow::ensure!(self.left_behind.patience().is_some(), "too many statements hang in the database");
        let (url, connection) = (self.url.clone(), self.connection.take());
        let (answer, answered) = channel();
        let run = move || -> Result<(OpenConnection, T), anyhow::Error> {
            let mut connection = match connection {
                Some(connection) => connection,
                None => connect(&url, SETTINGS)?,
            };
            let done = work(&mut connection).inspect_err(|error| {
                note_error(error);
                RECONNECTS.add_one();
            })?;
            Ok((connection, done))
        };
        // The work and the end of the wait for it race; the second of them sees that the other came first.
        let is_settled = Arc::new(AtomicBool::new(false));
        let (settled, left_behind) = (Arc::clone(&is_settled), Arc::clone(&self.left_behind));
        std::thread::Builder::new().name("key-uses-write".into()).spawn(move || {
            let _ = answer.send(run());
            if settled.swap(true, Ordering::AcqRel) {
                left_behind.came_back();
            }
        })?;
        let mut answer = answered.recv_timeout(PATIENCE);
        if answer.is_err() {
            self.left_behind.add();
            RECONNECTS.add_one();
            if is_settled.swap(true, Ordering::AcqRel) {
                self.left_behind.undo();
                answer = answered.try_recv().map_err(|_| RecvTimeoutError::Disconnected);
            }
        }
        let (connection, done) = answer.context("a statement hangs in the database")??;
        self.left_behind.note_success();
        self.connection = Some(connection);
        Ok(done)
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
            tracing::warn!(dropped, "there was no room for counts of answers and keys sent in clear: they are lost");
        }
    }
}

/// What has become of the writes of one interval.
#[derive(Default)]
struct Outcome {
    is_written: bool,
    /// The shards whose rows could not be written; none: those of one PostgreSQL.
    failed: BTreeSet<Option<usize>>,
    /// The first failure.
    error: Option<anyhow::Error>,
}

fn write_uses(connection: &mut PgConnection, used: &[(KeyHolder, OffsetDateTime)]) -> QueryResult<()> {
    let (holders, moments): (Vec<_>, Vec<_>) = used.iter().copied().unzip();
    let (organisations, keys): (Vec<_>, Vec<_>) = holders.iter().map(ids).unzip();
    // Every writer locks the rows in one order, so that two services never deadlock.
    sql_query(
        "INSERT INTO key_uses (organisation_id, key_id, last_used_at)
         SELECT * FROM unnest($1, $2, $3) ORDER BY 1, 2
         ON CONFLICT (organisation_id, key_id) DO UPDATE
         SET last_used_at = greatest(key_uses.last_used_at, excluded.last_used_at)",
    )
    .bind::<Array<SqlUuid>, _>(&organisations)
    .bind::<Array<SqlUuid>, _>(&keys)
    .bind::<Array<Timestamptz>, _>(&moments)
    .execute(connection)?;
    // The first use of a key sets the end of the key that it replaces. An end that is sooner stays; a later use changes
    // nothing, because the end has been set by then. Reckoned without a time zone, because what depends on one is refused by
    // Citus here, which also wants to be told twice whose keys they are.
    let ends_at = "(used.at AT TIME ZONE 'UTC' + new.replaced_ends_after) AT TIME ZONE 'UTC'";
    sql_query(format!(
        "UPDATE api_keys AS old SET expires_at = {ends_at}
         FROM unnest($1, $2, $3) AS used (organisation_id, id, at)
            JOIN api_keys AS new ON new.organisation_id = used.organisation_id AND new.id = used.id
         WHERE old.organisation_id = new.organisation_id AND old.id = new.replaces AND old.revoked_at IS NULL
            AND (old.expires_at IS NULL OR old.expires_at > {ends_at})
            AND old.organisation_id = ANY ($1) AND new.organisation_id = ANY ($1)",
    ))
    .bind::<Array<SqlUuid>, _>(&organisations)
    .bind::<Array<SqlUuid>, _>(&keys)
    .bind::<Array<Timestamptz>, _>(&moments)
    .execute(connection)
    .map(drop)
}

/// A key that was sent in clear, and the refusals of those requests.
#[derive(Clone)]
struct SentBy {
    key: KeyDigest,
    holder: KeyHolder,
    sent: SentInClear,
    refused: Vec<Refusal>,
}

/// Those of the keys that exist: whoever sends in clear may have made them up.
fn with_holders(homes: &KeyHomes, sent: &[(KeyDigest, SentInClear)], refused: &[(KeyDigest, Refusal)]) -> Vec<SentBy> {
    let mut refused_of: HashMap<&KeyDigest, Vec<Refusal>> = HashMap::new();
    for (key, refusal) in refused {
        refused_of.entry(key).or_default().push(refusal.clone());
    }
    let with_holder = |(key, sent): &(KeyDigest, SentInClear)| {
        let holder = homes.holder(key)?;
        Some(SentBy { key: *key, holder, sent: *sent, refused: refused_of.remove(key).unwrap_or_default() })
    };
    sent.iter().filter_map(with_holder).collect()
}

/// Marks the keys, counts the answers that the requests got, and stores their refusals: all of it or nothing, because
/// counting twice would be wrong.
fn write_sent_in_clear(connection: &mut PgConnection, sent: &[SentBy]) -> QueryResult<()> {
    connection.transaction(|connection| {
        mark_sent_in_clear(connection, sent)?;
        let counted = |sent: &SentBy| {
            ((sent.holder, sent.sent.at.to_offset(UtcOffset::UTC).date(), UPGRADE_REQUIRED, ""), sent.sent.count)
        };
        write_answers(connection, &sent.iter().map(counted).collect::<Vec<_>>())?;
        let refused = sent.iter().flat_map(|sent| sent.refused.iter().map(|refusal| (sent.holder, refusal.clone())));
        write_refusals(connection, &refused.collect::<Vec<_>>())
    })
}

fn mark_sent_in_clear(connection: &mut PgConnection, sent: &[SentBy]) -> QueryResult<()> {
    let (organisations, keys): (Vec<_>, Vec<_>) = sent.iter().map(|sent| ids(&sent.holder)).unzip();
    let moments: Vec<_> = sent.iter().map(|sent| sent.sent.at).collect();
    sql_query(
        "INSERT INTO key_uses (organisation_id, key_id, sent_in_clear_at)
         SELECT * FROM unnest($1, $2, $3) ORDER BY 1, 2
         ON CONFLICT (organisation_id, key_id) DO UPDATE
         SET sent_in_clear_at = greatest(key_uses.sent_in_clear_at, excluded.sent_in_clear_at)",
    )
    .bind::<Array<SqlUuid>, _>(organisations)
    .bind::<Array<SqlUuid>, _>(keys)
    .bind::<Array<Timestamptz>, _>(moments)
    .execute(connection)
    .map(drop)
}

/// Adds the counts to those that are stored.
fn write_answers(connection: &mut PgConnection, answers: &[(Counted, i64)]) -> QueryResult<()> {
    let (mut organisations, mut keys, mut days) = (vec![], vec![], vec![]);
    let (mut statuses, mut fields, mut counts) = (vec![], vec![], vec![]);
    for ((holder, day, status, field), count) in answers {
        let (organisation, key) = ids(holder);
        organisations.push(organisation);
        keys.push(key);
        days.push(*day);
        statuses.push(i32::from(*status));
        fields.push(*field);
        counts.push(*count);
    }
    sql_query(
        "INSERT INTO key_answers (organisation_id, key_id, day, status, field, count)
         SELECT * FROM unnest($1, $2, $3, $4, $5, $6) ORDER BY 1, 2, 3, 4, 5
         ON CONFLICT (organisation_id, key_id, day, status, field) DO UPDATE
         SET count = key_answers.count + excluded.count",
    )
    .bind::<Array<SqlUuid>, _>(organisations)
    .bind::<Array<SqlUuid>, _>(keys)
    .bind::<Array<SqlDate>, _>(days)
    .bind::<Array<Integer>, _>(statuses)
    .bind::<Array<Text>, _>(fields)
    .bind::<Array<BigInt>, _>(counts)
    .execute(connection)
    .map(drop)
}
