//! When keys were last used, which were sent in clear, and how requests with them were answered and refused: gathered
//! in memory, never part of a request's transaction. All of it is bounded, however long the database is away and
//! whatever strangers send.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{Array, Double, Timestamptz, Uuid as SqlUuid};
use foldhash::quality::RandomState;
use intake_domain::{AnswerCode, KeyDigest, KeyHolder, Refusal};
use time::OffsetDateTime;

use crate::keys::activity::answers::{KeyAnswers, Quarter};
use crate::keys::activity::refusals::LastRefusals;
use crate::keys::directory::KeyDirectory;
use crate::keys::ids_of;

/// One write for each key and minute, not one for each request: a hot row would slow every request with that key.
const WRITE_INTERVAL: Duration = Duration::from_secs(60);
/// Number of keys that are kept in memory; the uses of further ones are not noted. Active keys are far fewer.
const USED_MAX: usize = 100_000;
/// Number of keys seen in clear that are kept. They are not looked up at once, so strangers can send made-up ones.
const SENT_IN_CLEAR_MAX: usize = 10_000;

/// Notes of uses. Clones share what they gather.
#[derive(Clone, Default)]
pub struct KeyUses {
    gathered: Arc<Mutex<Gathered>>,
    pub(crate) answers: KeyAnswers,
}

#[derive(Default)]
struct Gathered {
    used: HashMap<KeyHolder, LastUse, RandomState>,
    refused: LastRefusals<KeyHolder>,
    sent_in_clear: HashMap<KeyHolder, OffsetDateTime>,
    /// Keys sent in clear that have not been looked up.
    unknown: HashMap<KeyDigest, SentInClear>,
    refused_unknown: LastRefusals<KeyDigest>,
}

/// Number of times that a key was seen in clear, when last, and with which code that was refused.
struct SentInClear {
    at: OffsetDateTime,
    code: AnswerCode,
    count: i64,
}

struct LastUse {
    /// Time on the monotonic clock; the database's clock converts it.
    at: Instant,
    is_written: bool,
    written_at: Option<Instant>,
    /// Time of the first patient that the key created, by which it ends the key that it replaces.
    created_at: Option<Instant>,
    is_creation_written: bool,
}

/// A use of a key that is to be written.
#[derive(Clone, Copy)]
pub(crate) struct Use {
    at: Instant,
    created_at: Option<Instant>,
}

impl KeyUses {
    /// Notes uses of keys, and whether each created a patient.
    pub(crate) fn note(&self, uses: impl Iterator<Item = (KeyHolder, Instant, bool)>) {
        let mut gathered = self.gathered();
        for (holder, at, has_created) in uses {
            let created_at = has_created.then_some(at);
            if let Some(last) = gathered.used.get_mut(&holder) {
                if at > last.at {
                    last.at = at;
                    last.is_written = false;
                }
                last.created_at = last.created_at.or(created_at);
            } else if gathered.used.len() < USED_MAX {
                let (is_written, is_creation_written) = (false, false);
                gathered
                    .used
                    .insert(holder, LastUse { at, is_written, written_at: None, created_at, is_creation_written });
            }
        }
    }

    /// Notes that a request was refused.
    pub(crate) fn note_refusal(&self, holder: KeyHolder, refusal: Refusal) {
        self.gathered().refused.add(holder, refusal);
    }

    /// Notes that a key was seen in clear, in a request that was refused for it.
    pub(crate) fn note_sent_in_clear(&self, key: &KeyDigest, refusal: Refusal) {
        let mut gathered = self.gathered();
        if !gathered.unknown.contains_key(key) && gathered.unknown.len() >= SENT_IN_CLEAR_MAX {
            return;
        }
        let sent = gathered.unknown.entry(*key).or_insert(SentInClear { at: refusal.at, code: refusal.code, count: 0 });
        sent.at = sent.at.max(refusal.at);
        sent.count += 1;
        gathered.refused_unknown.add(*key, refusal);
    }

    /// The keys sent in clear that are to be looked up.
    pub(crate) fn unknown(&self) -> Vec<KeyDigest> {
        self.gathered().unknown.keys().copied().collect()
    }

    /// Notes what is gathered of these keys with their holders. Those that have none were made up.
    pub(crate) fn sort(&self, looked_up: &[KeyDigest], directory: &KeyDirectory) {
        let mut gathered = self.gathered();
        for key in looked_up {
            let (sent, refusals) = (gathered.unknown.remove(key), gathered.refused_unknown.take_of(key));
            let Some((holder, sent)) = directory.holder(key).zip(sent) else { continue };
            note_latest(&mut gathered.sent_in_clear, holder, sent.at);
            self.answers.give_back(&[(holder, ((Quarter::holding(sent.at), sent.code, ""), sent.count))]);
            refusals.into_iter().for_each(|refusal| gathered.refused.add(holder, refusal));
        }
    }

    /// Takes the uses that are due: all of them at the end, else those of keys not written for a minute, and those that
    /// created a key's first patient.
    pub(crate) fn due(&self, is_end: bool) -> Vec<(KeyHolder, Use)> {
        let mut gathered = self.gathered();
        let now = Instant::now();
        let is_due = |last: &LastUse| last.written_at.is_none_or(|at| now - at >= WRITE_INTERVAL);
        // A key that was not used for a minute after its last write is forgotten: memory holds only the busy keys.
        gathered.used.retain(|_, last| !(last.is_written && is_due(last)));
        let mut used = Vec::new();
        for (holder, last) in &mut gathered.used {
            let created_at = last.created_at.filter(|_| !last.is_creation_written);
            if created_at.is_some() || !last.is_written && (is_end || is_due(last)) {
                last.is_written = true;
                last.is_creation_written = last.created_at.is_some();
                last.written_at = Some(now);
                used.push((*holder, Use { at: last.at, created_at }));
            }
        }
        used
    }

    /// Takes back uses that could not be written.
    pub(crate) fn give_back(&self, used: &[(KeyHolder, Use)]) {
        let mut gathered = self.gathered();
        for (holder, given_back) in used {
            // A key that was forgotten in the meantime had been written before, so nothing is lost.
            if let Some(last) = gathered.used.get_mut(holder) {
                last.is_written = false;
                last.written_at = None;
                last.is_creation_written &= given_back.created_at.is_none();
            }
        }
    }

    /// Takes the refusals.
    pub(crate) fn take_refused(&self) -> Vec<(KeyHolder, Refusal)> {
        self.gathered().refused.take()
    }

    /// Takes back refusals that could not be written, as far as there is room.
    pub(crate) fn give_back_refused(&self, refused: &[(KeyHolder, Refusal)]) {
        self.gathered().refused.give_back(refused);
    }

    /// Takes the keys that were sent in clear, and when they last were.
    pub(crate) fn take_sent_in_clear(&self) -> Vec<(KeyHolder, OffsetDateTime)> {
        self.gathered().sent_in_clear.drain().collect()
    }

    /// Takes back keys that could not be marked.
    pub(crate) fn give_back_sent_in_clear(&self, sent: &[(KeyHolder, OffsetDateTime)]) {
        let mut gathered = self.gathered();
        sent.iter().for_each(|(holder, at)| note_latest(&mut gathered.sent_in_clear, *holder, *at));
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn note_latest(sent: &mut HashMap<KeyHolder, OffsetDateTime>, holder: KeyHolder, at: OffsetDateTime) {
    if sent.len() < USED_MAX || sent.contains_key(&holder) {
        sent.entry(holder).and_modify(|latest| *latest = at.max(*latest)).or_insert(at);
    }
}

/// The moments are the database's: it gets the age of each use, so a wrong clock of the service ends no key.
pub(crate) fn write_uses(connection: &mut PgConnection, used: &[(KeyHolder, Use)]) -> QueryResult<()> {
    let (organisations, keys) = ids_of(used);
    let ages: Vec<_> = used.iter().map(|(_, last)| last.at.elapsed().as_secs_f64()).collect();
    // Reckoned without a time zone, because Citus refuses what depends on one here.
    let used_at = "now() AT TIME ZONE 'UTC' - used.age * interval '1 second'";
    // Every writer locks the rows in one order, so that two services never deadlock.
    sql_query(format!(
        "INSERT INTO key_uses (organisation_id, key_id, last_used_at)
         SELECT used.organisation_id, used.id, ({used_at}) AT TIME ZONE 'UTC'
         FROM unnest($1, $2, $3) AS used (organisation_id, id, age) ORDER BY 1, 2
         ON CONFLICT (organisation_id, key_id) DO UPDATE
         SET last_used_at = greatest(key_uses.last_used_at, excluded.last_used_at)",
    ))
    .bind::<Array<SqlUuid>, _>(&organisations)
    .bind::<Array<SqlUuid>, _>(&keys)
    .bind::<Array<Double>, _>(&ages)
    .execute(connection)?;
    let created: Vec<_> = used.iter().filter_map(|(holder, last)| Some((*holder, last.created_at?))).collect();
    if created.is_empty() {
        return Ok(());
    }
    let (organisations, keys) = ids_of(&created);
    let ages: Vec<_> = created.iter().map(|(_, at)| at.elapsed().as_secs_f64()).collect();
    sql_query("SELECT end_replaced_keys($1, $2, $3)")
        .bind::<Array<SqlUuid>, _>(organisations)
        .bind::<Array<SqlUuid>, _>(keys)
        .bind::<Array<Double>, _>(ages)
        .execute(connection)
        .map(drop)
}

/// Marks keys that were sent in clear.
pub(crate) fn mark_sent_in_clear(
    connection: &mut PgConnection,
    sent: &[(KeyHolder, OffsetDateTime)],
) -> QueryResult<()> {
    let (organisations, keys) = ids_of(sent);
    let moments: Vec<_> = sent.iter().map(|(_, at)| *at).collect();
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
