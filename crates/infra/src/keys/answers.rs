//! How requests were answered: counted in memory for keys that exist, written every few seconds by the thread that
//! writes the uses of keys. Never part of a request's transaction; a crash loses the last seconds.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{Array, BigInt, Date as SqlDate, Integer, Text, Uuid as SqlUuid};
use intake_domain::{AnswerCode, KeyHolder};
use time::{Date, OffsetDateTime, UtcOffset};

use crate::keys::ids_of;

/// Each thread counts in a shard of its own, so that busy workers do not wait for each other.
const SHARDS: usize = 16;
/// Counters in each shard; further ones are not counted until the next write.
const COUNTERS_MAX: usize = 5_000;

/// What one counter of a key counts: answers on a day with a code, or those of them that named a field.
type Counted = (Date, AnswerCode, &'static str);

type Counts = HashMap<(KeyHolder, Counted), i64>;

/// Where answers are counted. Clones share what they gather.
#[derive(Clone)]
pub(crate) struct KeyAnswers(Arc<Shared>);

struct Shared {
    shards: [Mutex<Counts>; SHARDS],
    dropped: AtomicUsize,
}

impl Default for KeyAnswers {
    fn default() -> Self {
        Self(Arc::new(Shared { shards: std::array::from_fn(|_| Mutex::default()), dropped: AtomicUsize::new(0) }))
    }
}

impl KeyAnswers {
    /// Counts an answer.
    pub(crate) fn note(&self, holder: KeyHolder, at: OffsetDateTime, code: AnswerCode, fields: &[&'static str]) {
        let Some(shard) = self.0.shards.get(own_shard()) else { return };
        let day = at.to_offset(UtcOffset::UTC).date();
        let mut counts = shard.lock().unwrap_or_else(PoisonError::into_inner);
        for field in std::iter::once(&"").chain(fields) {
            self.add(&mut counts, (holder, (day, code, field)), 1);
        }
    }

    /// Takes everything that was counted.
    pub(crate) fn take(&self) -> Vec<(KeyHolder, (Counted, i64))> {
        let mut all = Counts::new();
        for shard in &self.0.shards {
            for (counted, count) in shard.lock().unwrap_or_else(PoisonError::into_inner).drain() {
                *all.entry(counted).or_default() += count;
            }
        }
        all.into_iter().map(|((holder, counted), count)| (holder, (counted, count))).collect()
    }

    /// Takes back what could not be written, as far as there is room.
    pub(crate) fn give_back(&self, counts: &[(KeyHolder, (Counted, i64))]) {
        let mut shards = self.0.shards.iter().cycle();
        for part in counts.chunks(COUNTERS_MAX / 2) {
            let Some(shard) = shards.next() else { return };
            let mut into = shard.lock().unwrap_or_else(PoisonError::into_inner);
            for (holder, (counted, count)) in part {
                self.add(&mut into, (*holder, *counted), *count);
            }
        }
    }

    /// How many counters found no room since the last call.
    pub(crate) fn take_dropped(&self) -> usize {
        self.0.dropped.swap(0, Ordering::Relaxed)
    }

    fn add(&self, counts: &mut Counts, counted: (KeyHolder, Counted), more: i64) {
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

/// Adds the counts to those that are stored.
pub(crate) fn write_answers(connection: &mut PgConnection, answers: &[(KeyHolder, (Counted, i64))]) -> QueryResult<()> {
    let (organisations, keys) = ids_of(answers);
    let (mut days, mut statuses, mut fields, mut counts) = (vec![], vec![], vec![], vec![]);
    for (_, ((day, code, field), count)) in answers {
        days.push(*day);
        statuses.push(i32::from(code.0));
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

#[cfg(test)]
mod tests {
    use time::macros::datetime;
    use uuid::Uuid;

    use super::*;

    const CREATED: AnswerCode = AnswerCode(201);
    const NOW: OffsetDateTime = datetime!(2025-12-03 10:30 UTC);

    fn holder(number: u32) -> KeyHolder {
        let id = Uuid::from_u128(u128::from(number));
        KeyHolder { key_id: id.into(), organisation_id: id.into() }
    }

    #[test]
    fn what_is_given_back_over_and_over_stays_within_its_bound() {
        let answers = KeyAnswers::default();
        for round in 0..20_u16 {
            for number in 0..u32::try_from(COUNTERS_MAX).unwrap() {
                answers.note(holder(number), NOW, AnswerCode(400 + round), &[]);
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
        answers.note(holder(1), NOW, CREATED, &[]);
        answers.give_back(&answers.take());
        answers.note(holder(1), NOW, CREATED, &[]);
        assert_eq!(answers.take(), [(holder(1), ((NOW.date(), CREATED, ""), 2))]);
    }
}
