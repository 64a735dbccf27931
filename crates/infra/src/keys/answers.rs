//! How requests were answered: counted in memory for keys that exist, written every few seconds by the thread that writes
//! the uses of keys. Never part of a request's transaction; a crash loses the last seconds.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use intake_domain::{KeyDigest, KeyHolder};
use time::{Date, OffsetDateTime, UtcOffset};

/// Each thread counts in a shard of its own, so that busy workers do not wait for each other.
const SHARDS: usize = 16;
/// Counters in each shard; further ones are not counted until the next write.
const COUNTERS_MAX: usize = 5_000;
/// How many keys are remembered as known to exist. Their owner never changes, so when there is no room left, all are
/// forgotten, and the busy ones are soon known again.
const KNOWN_MAX: usize = 20_000;

/// What one counter counts: answers to a key on a day with a status, or those of them that named a field.
pub(crate) type Counted = (KeyHolder, Date, u16, &'static str);

/// Where answers are counted. Clones share what they gather.
#[derive(Clone)]
pub(crate) struct KeyAnswers(Arc<Shared>);

struct Shared {
    known: RwLock<HashMap<KeyDigest, KeyHolder>>,
    shards: [Mutex<HashMap<Counted, i64>>; SHARDS],
    dropped: AtomicUsize,
}

impl Default for KeyAnswers {
    fn default() -> Self {
        Self(Arc::new(Shared {
            known: RwLock::default(),
            shards: std::array::from_fn(|_| Mutex::default()),
            dropped: AtomicUsize::new(0),
        }))
    }
}

impl KeyAnswers {
    /// Remembers that the key exists, and whose it is.
    pub(crate) fn know(&self, key: &KeyDigest, holder: KeyHolder) {
        if self.0.known.read().unwrap_or_else(PoisonError::into_inner).contains_key(key) {
            return;
        }
        let mut known = self.0.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(*key, holder);
    }

    /// Whose the key is, if it is known to exist.
    pub(crate) fn holder(&self, key: &KeyDigest) -> Option<KeyHolder> {
        self.0.known.read().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }

    /// Counts an answer, if the key exists, and returns whose it is.
    pub(crate) fn note(
        &self,
        key: &KeyDigest,
        at: OffsetDateTime,
        status: u16,
        fields: &[&'static str],
    ) -> Option<KeyHolder> {
        let holder = self.holder(key)?;
        let shard = self.0.shards.get(own_shard())?;
        let day = at.to_offset(UtcOffset::UTC).date();
        let mut counts = shard.lock().unwrap_or_else(PoisonError::into_inner);
        for field in std::iter::once(&"").chain(fields) {
            self.add(&mut counts, (holder, day, status, field), 1);
        }
        Some(holder)
    }

    /// Takes everything that was counted.
    pub(crate) fn take(&self) -> Vec<(Counted, i64)> {
        let mut all: HashMap<Counted, i64> = HashMap::new();
        for shard in &self.0.shards {
            for (counted, count) in shard.lock().unwrap_or_else(PoisonError::into_inner).drain() {
                *all.entry(counted).or_default() += count;
            }
        }
        all.into_iter().collect()
    }

    /// Takes back what could not be written, as far as there is room.
    pub(crate) fn give_back(&self, counts: &[(Counted, i64)]) {
        let mut shards = self.0.shards.iter().cycle();
        for part in counts.chunks(COUNTERS_MAX / 2) {
            let Some(shard) = shards.next() else { return };
            let mut into = shard.lock().unwrap_or_else(PoisonError::into_inner);
            for (counted, count) in part {
                self.add(&mut into, *counted, *count);
            }
        }
    }

    /// How many counters found no room since the last call.
    pub(crate) fn take_dropped(&self) -> usize {
        self.0.dropped.swap(0, Ordering::Relaxed)
    }

    fn add(&self, counts: &mut HashMap<Counted, i64>, counted: Counted, more: i64) {
        if let Some(count) = counts.get_mut(&counted) {
            *count += more;
        } else if counts.len() < COUNTERS_MAX {
            counts.insert(counted, more);
        } else {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn own_shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
    }
    OWN.get()
}

#[cfg(test)]
mod tests {
    use intake_domain::{Environment, KeyFormat};
    use time::macros::datetime;
    use uuid::Uuid;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2025-12-03 10:30 UTC);

    fn key(number: u32) -> (KeyDigest, KeyHolder) {
        let mut random = [0; 32];
        random[..4].copy_from_slice(&number.to_be_bytes());
        let digest = KeyFormat::new(&"intake".parse().unwrap(), Environment::Development).mint(random).digest();
        let id = Uuid::from_u128(u128::from(number));
        (digest, KeyHolder { key_id: id.into(), organisation_id: id.into() })
    }

    #[test]
    fn a_key_that_nobody_has_is_not_counted() {
        let answers = KeyAnswers::default();
        let (digest, holder) = key(1);
        answers.note(&digest, NOW, 401, &[]);
        assert!(answers.take().is_empty());
        answers.know(&digest, holder);
        answers.note(&digest, NOW, 422, &["email"]);
        assert_eq!(answers.take().len(), 2);
    }

    #[test]
    fn what_is_given_back_over_and_over_stays_within_its_bound() {
        let answers = KeyAnswers::default();
        for round in 0..20_u16 {
            for number in 0..u32::try_from(COUNTERS_MAX).unwrap() {
                let (digest, holder) = key(number);
                answers.know(&digest, holder);
                answers.note(&digest, NOW, 400 + round, &[]);
            }
            let taken = answers.take();
            assert!(taken.len() <= SHARDS * COUNTERS_MAX, "{}", taken.len());
            answers.give_back(&taken);
        }
        assert!(answers.take_dropped() > 0);
    }

    #[test]
    fn counts_that_are_given_back_are_added_to() {
        let answers = KeyAnswers::default();
        let (digest, holder) = key(1);
        answers.know(&digest, holder);
        answers.note(&digest, NOW, 201, &[]);
        answers.give_back(&answers.take());
        answers.note(&digest, NOW, 201, &[]);
        assert_eq!(answers.take(), [((holder, NOW.date(), 201, ""), 2)]);
    }
}
