//! When keys were last used, which were sent in clear, and how requests with them were answered: gathered in memory, never
//! part of a request's transaction. All of it is bounded, however long the database is away and whatever strangers send.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use intake_domain::{KeyDigest, KeyHolder, KeyStanding};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::keys::answers::KeyAnswers;

/// One write for each key and minute, not one for each request: a hot row would slow every request with that key.
const WRITE_INTERVAL: Duration = Duration::from_secs(60);
/// How many keys are kept in memory; the uses of further ones are not noted. Active keys are far fewer.
const USED_MAX: usize = 100_000;
/// How many keys seen in clear are kept. They are not looked up, so strangers can send made-up ones.
const SENT_IN_CLEAR_MAX: usize = 10_000;

/// Where uses are noted. Clones share what they gather.
#[derive(Clone, Default)]
pub struct KeyUses {
    gathered: Arc<Mutex<Gathered>>,
    pub(crate) answers: KeyAnswers,
}

#[derive(Default)]
struct Gathered {
    used: HashMap<KeyHolder, LastUse>,
    sent_in_clear: HashMap<KeyDigest, OffsetDateTime>,
}

struct LastUse {
    at: OffsetDateTime,
    is_written: bool,
    written_at: Option<Instant>,
}

impl KeyUses {
    /// Notes that a key was looked up and found.
    pub(crate) fn note(&self, key: &KeyDigest, holder: KeyHolder, standing: KeyStanding, at: OffsetDateTime) {
        self.answers.know(key, holder);
        if !matches!(standing, KeyStanding::Active(_)) {
            return;
        }
        let mut gathered = self.gathered();
        if let Some(last) = gathered.used.get_mut(&holder) {
            if at > last.at {
                last.at = at;
                last.is_written = false;
            }
        } else if gathered.used.len() < USED_MAX {
            gathered.used.insert(holder, LastUse { at, is_written: false, written_at: None });
        }
    }

    pub(crate) fn note_sent_in_clear(&self, key: &KeyDigest, at: OffsetDateTime) {
        let mut gathered = self.gathered();
        if gathered.sent_in_clear.len() < SENT_IN_CLEAR_MAX {
            gathered.sent_in_clear.insert(*key, at);
        }
    }

    /// Takes the uses that are due: all of them at the end, else those of keys not written for a minute.
    pub(crate) fn due(&self, is_end: bool) -> Vec<(KeyHolder, OffsetDateTime)> {
        let mut gathered = self.gathered();
        let now = Instant::now();
        // A key that was not used for a minute after its last write is forgotten: memory holds only the busy keys.
        let is_resting =
            |last: &LastUse| last.is_written && last.written_at.is_none_or(|at| now - at >= WRITE_INTERVAL);
        gathered.used.retain(|_, last| !is_resting(last));
        let is_due = |last: &LastUse| is_end || last.written_at.is_none_or(|at| now - at >= WRITE_INTERVAL);
        let mut used = Vec::new();
        for (holder, last) in gathered.used.iter_mut().filter(|(_, last)| !last.is_written && is_due(last)) {
            last.is_written = true;
            last.written_at = Some(now);
            used.push((*holder, last.at));
        }
        used
    }

    /// Takes back uses that could not be written.
    pub(crate) fn give_back(&self, used: &[(KeyHolder, OffsetDateTime)]) {
        let mut gathered = self.gathered();
        for (holder, _) in used {
            // A key that was forgotten in the meantime had been written before, so nothing is lost.
            if let Some(last) = gathered.used.get_mut(holder) {
                last.is_written = false;
                last.written_at = None;
            }
        }
    }

    /// Takes the keys that were sent in clear.
    pub(crate) fn take_sent_in_clear(&self) -> Vec<(KeyDigest, OffsetDateTime)> {
        self.gathered().sent_in_clear.drain().collect()
    }

    /// Takes back keys that could not be marked, as far as there is room. Returns how many were dropped.
    pub(crate) fn give_back_sent_in_clear(&self, sent: &[(KeyDigest, OffsetDateTime)]) -> usize {
        let mut gathered = self.gathered();
        let mut dropped = 0;
        for (key, at) in sent {
            if gathered.sent_in_clear.len() < SENT_IN_CLEAR_MAX {
                gathered.sent_in_clear.entry(*key).or_insert(*at);
            } else {
                dropped += 1;
            }
        }
        dropped
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The primary key of the tables about keys, in its order. Every writer locks rows in this order, so that two services
/// never deadlock.
pub(crate) fn ids(holder: &KeyHolder) -> (Uuid, Uuid) {
    (*holder.organisation_id.as_uuid(), *holder.key_id.as_uuid())
}
