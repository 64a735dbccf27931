//! How requests were answered: counted in memory, written every few seconds by the thread that writes the uses of keys.
//! Never part of a request's transaction; a crash loses the last seconds.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Date as SqlDate, Integer, Text};
use intake_domain::KeyDigest;
use time::{Date, OffsetDateTime, UtcOffset};

/// Each thread counts in a place of its own, so that busy workers do not wait for each other.
const PLACES: usize = 16;
/// Counters in each place; beyond it newcomers go uncounted until the next write. Strangers' keys must not fill the memory.
const MAX_GATHERED: usize = 20_000;

/// What is counted apart: key, day, status, and the field named, if any.
type Counted = (KeyDigest, Date, u16, &'static str);

/// Where answers are counted. Clones share what they gather.
#[derive(Clone)]
pub(crate) struct KeyAnswers(Arc<[Mutex<HashMap<Counted, i64>>; PLACES]>);

impl Default for KeyAnswers {
    fn default() -> Self {
        Self(Arc::new(std::array::from_fn(|_| Mutex::default())))
    }
}

impl KeyAnswers {
    pub(crate) fn note(&self, key: &KeyDigest, at: OffsetDateTime, status: u16, fields: &[&'static str]) {
        let Some(place) = self.0.get(own_place()) else {
            return;
        };
        let day = at.to_offset(UtcOffset::UTC).date();
        let mut counts = place.lock().unwrap_or_else(PoisonError::into_inner);
        for field in std::iter::once(&"").chain(fields) {
            if let Some(count) = counts.get_mut(&(*key, day, status, *field)) {
                *count += 1;
            } else if counts.len() < MAX_GATHERED {
                counts.insert((*key, day, status, *field), 1);
            }
        }
    }

    /// Takes everything that was counted.
    pub(crate) fn take(&self) -> Gathered {
        let mut all = Gathered::default();
        for place in self.0.iter() {
            for (counted, count) in place.lock().unwrap_or_else(PoisonError::into_inner).drain() {
                *all.0.entry(counted).or_default() += count;
            }
        }
        all
    }

    /// Takes back what could not be written.
    pub(crate) fn give_back(&self, gathered: Gathered) {
        let Some(place) = self.0.first() else {
            return;
        };
        let mut counts = place.lock().unwrap_or_else(PoisonError::into_inner);
        for (counted, count) in gathered.0 {
            *counts.entry(counted).or_default() += count;
        }
    }
}

/// Counts on their way into the database.
#[derive(Default)]
pub(crate) struct Gathered(HashMap<Counted, i64>);

impl Gathered {
    /// Whether nothing was counted: then there is nobody to connect for.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the counts to those that are stored. Keys that nobody has are left out.
    pub(crate) fn write(&self, connection: &mut PgConnection) -> QueryResult<()> {
        let (mut keys, mut days, mut statuses, mut fields, mut counts) = (vec![], vec![], vec![], vec![], vec![]);
        for ((key, day, status, field), count) in &self.0 {
            keys.push(key.as_bytes().as_slice());
            days.push(*day);
            statuses.push(i32::from(*status));
            fields.push(*field);
            counts.push(*count);
        }
        // Every writer takes the rows in one order, so that two services never wait for each other in a circle.
        diesel::sql_query(
            "INSERT INTO key_answers (organisation_id, key_id, day, status, field, count)
             SELECT api_keys.organisation_id, api_keys.id, noted.day, noted.status, noted.field, noted.count
             FROM unnest($1, $2, $3, $4, $5) AS noted (digest, day, status, field, count)
             JOIN api_keys ON api_keys.digest = noted.digest ORDER BY 1, 2, 3, 4, 5
             ON CONFLICT (organisation_id, key_id, day, status, field) DO UPDATE
             SET count = key_answers.count + excluded.count",
        )
        .bind::<Array<Binary>, _>(keys)
        .bind::<Array<SqlDate>, _>(days)
        .bind::<Array<Integer>, _>(statuses)
        .bind::<Array<Text>, _>(fields)
        .bind::<Array<BigInt>, _>(counts)
        .execute(connection)
        .map(drop)
    }
}

fn own_place() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed) % PLACES);
    }
    OWN.get()
}
