//! When keys were last used, which were sent in clear, and how requests with them were answered and refused: gathered in memory, never
//! part of a request's transaction. All of it is bounded, however long the database is away and whatever strangers send.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use intake_domain::{KeyDigest, KeyHolder, KeyStanding, Refusal, RefusalReason};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::keys::answers::KeyAnswers;
use crate::keys::homes::KeyHomes;
use crate::keys::refusals::LastRefusals;
use crate::shards::Shards;

/// One write for each key and minute, not one for each request: a hot row would slow every request with that key.
const WRITE_INTERVAL: Duration = Duration::from_secs(60);
/// How many keys are kept in memory; the uses of further ones are not noted. Active keys are far fewer.
const USED_MAX: usize = 100_000;
/// How many keys seen in clear are kept. They are not looked up, so strangers can send made-up ones.
const SENT_IN_CLEAR_MAX: usize = 10_000;

/// What is noted of keys that were sent in clear: each of them, and the refusals of those requests.
pub(crate) type TakenInClear = (Vec<(KeyDigest, SentInClear)>, Vec<(KeyDigest, Refusal)>);

/// The status of answers to requests that were not encrypted.
pub(crate) const UPGRADE_REQUIRED: u16 = 426;

/// Where uses are noted, and what is known about whose keys they are. Clones share what they gather.
#[derive(Clone, Default)]
pub struct KeyUses {
    gathered: Arc<Mutex<Gathered>>,
    pub(crate) answers: KeyAnswers,
    pub(crate) homes: KeyHomes,
    pub(crate) shards: Shards,
}

#[derive(Default)]
struct Gathered {
    used: HashMap<KeyHolder, LastUse>,
    refused: LastRefusals<KeyHolder>,
    sent_in_clear: HashMap<KeyDigest, SentInClear>,
    refused_in_clear: LastRefusals<KeyDigest>,
}

/// How often a key was seen in clear since that was last written, and when last.
#[derive(Clone, Copy)]
pub(crate) struct SentInClear {
    pub(crate) at: OffsetDateTime,
    pub(crate) count: i64,
}

struct LastUse {
    at: OffsetDateTime,
    is_written: bool,
    written_at: Option<Instant>,
}

impl KeyUses {
    /// Notes that a key was looked up and found.
    pub(crate) fn note(&self, holder: KeyHolder, standing: KeyStanding, at: OffsetDateTime) {
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

    /// Notes that a request was refused, if its key is known to exist.
    pub(crate) fn note_refusal(&self, key: &KeyDigest, refusal: Refusal) {
        if let Some(holder) = self.homes.holder(key) {
            self.gathered().refused.add(holder, refusal);
        }
    }

    /// Notes that a key was seen in clear, in a request that was refused for it.
    pub(crate) fn note_sent_in_clear(&self, key: &KeyDigest, at: OffsetDateTime, request_id: &str) {
        let request_id = request_id.to_owned();
        let mut gathered = self.gathered();
        if let Some(sent) = gathered.sent_in_clear.get_mut(key) {
            *sent = SentInClear { at: sent.at.max(at), count: sent.count + 1 };
        } else if gathered.sent_in_clear.len() < SENT_IN_CLEAR_MAX {
            gathered.sent_in_clear.insert(*key, SentInClear { at, count: 1 });
        } else {
            return;
        }
        let reason = Some(RefusalReason::Unencrypted);
        gathered.refused_in_clear.add(*key, Refusal { at, status: UPGRADE_REQUIRED, reason, request_id });
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

    /// Takes the refusals of keys that are known.
    pub(crate) fn take_refused(&self) -> Vec<(KeyHolder, Refusal)> {
        self.gathered().refused.take()
    }

    /// Takes back refusals that could not be written, as far as there is room.
    pub(crate) fn give_back_refused(&self, refused: &[(KeyHolder, Refusal)]) {
        self.gathered().refused.give_back(refused);
    }

    /// Takes the keys that were sent in clear, and the refusals of those requests.
    pub(crate) fn take_sent_in_clear(&self) -> TakenInClear {
        let mut gathered = self.gathered();
        (gathered.sent_in_clear.drain().collect(), gathered.refused_in_clear.take())
    }

    /// Takes back keys that could not be marked, as far as there is room. Returns how many were dropped.
    pub(crate) fn give_back_sent_in_clear(
        &self,
        sent: &[(KeyDigest, SentInClear)],
        refused: &[(KeyDigest, Refusal)],
    ) -> usize {
        let mut gathered = self.gathered();
        let mut dropped = 0;
        for (key, earlier) in sent {
            if let Some(later) = gathered.sent_in_clear.get_mut(key) {
                later.count += earlier.count;
            } else if gathered.sent_in_clear.len() < SENT_IN_CLEAR_MAX {
                gathered.sent_in_clear.insert(*key, *earlier);
            } else {
                dropped += 1;
            }
        }
        gathered.refused_in_clear.give_back(refused);
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
