//! When keys were last used, and which were sent in clear: gathered in memory, written by a thread of its own, at most
//! once a minute for each key. Never part of a request's transaction; a crash loses the last minute at most.

use std::collections::HashMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, Binary, Timestamptz, Uuid as SqlUuid};
use intake_domain::{KeyDigest, KeyHolder};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database_url::DatabaseUrl;
use crate::key_answers::KeyAnswers;
use crate::sweep::Sweep;
use crate::vital_thread::spawn_vital;

/// How often to look for what is due: a first use shows up this soon.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// In flushes: answers are counted for charts of days.
const ANSWERS_EVERY: u64 = 5;
/// One write a key and minute, not one a request: a hot row would slow every request of that key.
const WRITE_INTERVAL: Duration = Duration::from_secs(60);
/// Keys in memory at most; beyond it newcomers go unnoted. Active keys are far fewer, and strangers' keys that are sent in
/// clear must not fill the memory.
const MAX_GATHERED: usize = 100_000;

/// The end of the service waits for the last write, so it must not wait for whoever holds the table.
const SETTINGS: &str = "SET lock_timeout = '2s'; SET statement_timeout = '4s'";

/// Where uses are noted. Clones share what they gather.
#[derive(Clone, Default)]
pub struct KeyUses {
    gathered: Arc<Mutex<Gathered>>,
    pub(crate) answers: KeyAnswers,
}

#[derive(Default)]
struct Gathered {
    used: HashMap<(Uuid, Uuid), LastUse>,
    sent_in_clear: HashMap<KeyDigest, OffsetDateTime>,
}

struct LastUse {
    at: OffsetDateTime,
    is_written: bool,
    written_at: Option<Instant>,
}

impl KeyUses {
    pub(crate) fn note(&self, holder: KeyHolder, at: OffsetDateTime) {
        let key = (*holder.organisation_id.as_uuid(), *holder.key_id.as_uuid());
        let mut gathered = self.gathered();
        if let Some(last) = gathered.used.get_mut(&key) {
            if at > last.at {
                last.at = at;
                last.is_written = false;
            }
        } else if gathered.used.len() < MAX_GATHERED {
            gathered.used.insert(key, LastUse { at, is_written: false, written_at: None });
        }
    }

    pub(crate) fn note_sent_in_clear(&self, key: &KeyDigest, at: OffsetDateTime) {
        let mut gathered = self.gathered();
        if gathered.sent_in_clear.len() < MAX_GATHERED {
            gathered.sent_in_clear.insert(*key, at);
        }
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what is due: all of it at the end, else the keys not written for a minute.
    fn due(&self, is_end: bool) -> Due {
        let mut gathered = self.gathered();
        let now = Instant::now();
        // A key that was not used for a minute after its last write is forgotten: memory holds the busy keys alone.
        let is_resting =
            |last: &LastUse| last.is_written && last.written_at.is_none_or(|at| now - at >= WRITE_INTERVAL);
        gathered.used.retain(|_, last| !is_resting(last));
        let is_due = |last: &LastUse| is_end || last.written_at.is_none_or(|at| now - at >= WRITE_INTERVAL);
        let mut used = Vec::new();
        for (key, last) in gathered.used.iter_mut().filter(|(_, last)| !last.is_written && is_due(last)) {
            last.is_written = true;
            last.written_at = Some(now);
            used.push((*key, last.at));
        }
        Due { used, sent_in_clear: std::mem::take(&mut gathered.sent_in_clear) }
    }

    /// Takes back what could not be written.
    fn give_back(&self, due: Due) {
        let mut gathered = self.gathered();
        for (key, at) in due.used {
            let last = gathered.used.entry(key).or_insert(LastUse { at, is_written: false, written_at: None });
            last.is_written = false;
            last.written_at = None;
        }
        for (key, at) in due.sent_in_clear {
            gathered.sent_in_clear.entry(key).or_insert(at);
        }
    }
}

struct Due {
    used: Vec<((Uuid, Uuid), OffsetDateTime)>,
    sent_in_clear: HashMap<KeyDigest, OffsetDateTime>,
}

/// The thread that writes what [`KeyUses`] gathers.
pub struct KeyUseWriter {
    stop: Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl KeyUseWriter {
    /// Starts the thread.
    pub fn start(url: DatabaseUrl, uses: KeyUses) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let run = move || {
            let mut connection = None;
            let mut ticks = 0_u64;
            let mut sweep = Sweep::new();
            loop {
                let is_end = stopped.recv_timeout(FLUSH_INTERVAL) != Err(RecvTimeoutError::Timeout);
                let due = uses.due(is_end);
                if let Err(error) = write(&mut connection, &url, &due) {
                    tracing::debug!(error = %error, "the last uses of keys could not be written; they are kept");
                    connection = None;
                    uses.give_back(due);
                }
                ticks += 1;
                if is_end || ticks.is_multiple_of(ANSWERS_EVERY) {
                    write_answers(&mut connection, &url, &uses.answers);
                }
                if is_end {
                    return;
                }
                if let Err(error) = sweep.step(|| connected(&mut connection, &url)) {
                    tracing::warn!(error = %error, "what is over could not be removed; the next sweep tries again");
                    connection = None;
                }
            }
        };
        let thread = spawn_vital(std::thread::Builder::new().name("key-uses".into()), run)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for KeyUseWriter {
    /// Writes what is left.
    fn drop(&mut self) {
        let _ = self.stop.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Counts that cannot be written are kept for the next time.
fn write_answers(connection: &mut Option<PgConnection>, url: &DatabaseUrl, answers: &KeyAnswers) {
    let gathered = answers.take();
    if gathered.is_empty() {
        return;
    }
    let written = connected(connection, url).and_then(|connection| Ok(gathered.write(connection)?));
    if let Err(error) = written {
        tracing::debug!(error = %error, "the counts of answers could not be written; they are kept");
        *connection = None;
        answers.give_back(gathered);
    }
}

fn connected<'a>(
    connection: &'a mut Option<PgConnection>,
    url: &DatabaseUrl,
) -> Result<&'a mut PgConnection, anyhow::Error> {
    match connection {
        Some(connection) => Ok(connection),
        None => {
            let mut new = PgConnection::establish(url.expose())?;
            new.batch_execute(SETTINGS)?;
            Ok(connection.insert(new))
        }
    }
}

fn write(connection: &mut Option<PgConnection>, url: &DatabaseUrl, due: &Due) -> Result<(), anyhow::Error> {
    if due.used.is_empty() && due.sent_in_clear.is_empty() {
        return Ok(());
    }
    let connection = connected(connection, url)?;
    // Every writer takes the rows in one order, so that two services never wait for each other in a circle.
    if !due.used.is_empty() {
        let (keys, moments): (Vec<_>, Vec<_>) = due.used.iter().copied().unzip();
        let (organisations, ids): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
        diesel::sql_query(
            "INSERT INTO key_uses (organisation_id, key_id, last_used_at)
             SELECT * FROM unnest($1, $2, $3) ORDER BY 1, 2
             ON CONFLICT (organisation_id, key_id) DO UPDATE
             SET last_used_at = greatest(key_uses.last_used_at, excluded.last_used_at)",
        )
        .bind::<Array<SqlUuid>, _>(&organisations)
        .bind::<Array<SqlUuid>, _>(&ids)
        .bind::<Array<Timestamptz>, _>(&moments)
        .execute(connection)?;
        // The first use of a key begins the end of the one whose place it takes. Its own end, if it has one, stays if it
        // is sooner; a later use changes nothing, because the end has been set by then.
        diesel::sql_query(
            "UPDATE api_keys AS old SET expires_at = used.at + new.replaced_ends_after
             FROM unnest($1, $2) AS used (id, at) JOIN api_keys AS new ON new.id = used.id
             WHERE old.id = new.replaces AND old.revoked_at IS NULL
                AND (old.expires_at IS NULL OR old.expires_at > used.at + new.replaced_ends_after)",
        )
        .bind::<Array<SqlUuid>, _>(&ids)
        .bind::<Array<Timestamptz>, _>(&moments)
        .execute(connection)?;
    }
    if !due.sent_in_clear.is_empty() {
        let (digests, moments): (Vec<_>, Vec<_>) =
            due.sent_in_clear.iter().map(|(key, at)| (key.as_bytes().as_slice(), *at)).unzip();
        diesel::sql_query(
            "INSERT INTO key_uses (organisation_id, key_id, sent_in_clear_at)
             SELECT api_keys.organisation_id, api_keys.id, sent.at
             FROM unnest($1, $2) AS sent (digest, at) JOIN api_keys ON api_keys.digest = sent.digest ORDER BY 1, 2
             ON CONFLICT (organisation_id, key_id) DO UPDATE
             SET sent_in_clear_at = greatest(key_uses.sent_in_clear_at, excluded.sent_in_clear_at)",
        )
        .bind::<Array<Binary>, _>(digests)
        .bind::<Array<Timestamptz>, _>(moments)
        .execute(connection)?;
    }
    Ok(())
}
