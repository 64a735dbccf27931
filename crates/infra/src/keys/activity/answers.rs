//! How requests were answered and from where they came: gathered in memory for keys that exist, written every few
//! seconds by the thread that writes the uses of keys. Never part of a request's transaction; a crash loses the last
//! seconds.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{Array, BigInt, Date as SqlDate, Integer, Text, Uuid as SqlUuid};
use foldhash::quality::RandomState;
use intake_domain::{AnswerCode, KeyAnswer, KeyClient, KeyHolder};
use time::{Date, OffsetDateTime, UtcOffset};

use crate::keys::ids_of;

/// Each thread counts in a shard of its own, so that busy workers do not wait for each other.
const SHARDS: usize = 16;
/// Counters, and clients, in each shard; further ones are not kept until the next write.
const COUNTERS_MAX: usize = 5_000;

/// Subject of one counter of a key: answers on a day with a code, or those of them that named a field.
type Counted = (Date, AnswerCode, &'static str);

type Counts = HashMap<(KeyHolder, Counted), i64, RandomState>;

type Clients = HashMap<KeyHolder, LastClient, RandomState>;

/// The last client of a key, and when it was answered.
pub(crate) type LastClient = (OffsetDateTime, KeyClient);

/// Counts that a thread has gathered.
#[derive(Default)]
struct Gathered {
    counts: Counts,
    clients: Clients,
}

/// Counts of answers. Clones share what they gather.
#[derive(Clone)]
pub(crate) struct KeyAnswers(Arc<Shared>);

struct Shared {
    shards: [Mutex<Gathered>; SHARDS],
    dropped: AtomicUsize,
}

impl Default for KeyAnswers {
    fn default() -> Self {
        Self(Arc::new(Shared { shards: std::array::from_fn(|_| Mutex::default()), dropped: AtomicUsize::new(0) }))
    }
}

impl KeyAnswers {
    /// Counts an answer, and remembers its client.
    pub(crate) fn note(&self, holder: KeyHolder, answer: KeyAnswer, fields: &[&'static str]) {
        let KeyAnswer { at, code, client } = answer;
        let Some(shard) = self.0.shards.get(own_shard()) else { return };
        let day = at.to_offset(UtcOffset::UTC).date();
        let mut gathered = lock(shard);
        for field in std::iter::once(&"").chain(fields) {
            self.add(&mut gathered.counts, (holder, (day, code, field)), 1);
        }
        if let Some(client) = client {
            remember(&mut gathered.clients, holder, (at, client));
        }
    }

    /// Takes everything that was counted.
    pub(crate) fn take(&self) -> Vec<(KeyHolder, (Counted, i64))> {
        let mut all = Counts::default();
        for shard in &self.0.shards {
            for (counted, count) in lock(shard).counts.drain() {
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
            let mut into = lock(shard);
            for (holder, (counted, count)) in part {
                self.add(&mut into.counts, (*holder, *counted), *count);
            }
        }
    }

    /// Takes the last client of each key.
    pub(crate) fn take_clients(&self) -> Vec<(KeyHolder, LastClient)> {
        let mut all = Clients::default();
        for shard in &self.0.shards {
            lock(shard).clients.drain().for_each(|(holder, client)| remember(&mut all, holder, client));
        }
        all.into_iter().collect()
    }

    /// Takes back clients that could not be written, unless there are later ones.
    pub(crate) fn give_back_clients(&self, clients: &[(KeyHolder, LastClient)]) {
        let Some(shard) = self.0.shards.first() else { return };
        let mut into = lock(shard);
        clients.iter().for_each(|(holder, client)| remember(&mut into.clients, *holder, *client));
    }

    /// Returns how many counters found no room since the last call.
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

fn lock(shard: &Mutex<Gathered>) -> MutexGuard<'_, Gathered> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a client in place of the key's earlier one.
fn remember(clients: &mut Clients, holder: KeyHolder, client: LastClient) {
    if clients.len() < COUNTERS_MAX || clients.contains_key(&holder) {
        let last = clients.entry(holder).or_insert(client);
        if last.0 <= client.0 {
            *last = client;
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
    use intake_domain::ClientProgram;
    use time::macros::datetime;
    use uuid::Uuid;

    use super::*;

    const CREATED: AnswerCode = AnswerCode(201);
    const NOW: OffsetDateTime = datetime!(2025-12-03 10:30 UTC);

    fn answer(code: AnswerCode) -> KeyAnswer {
        KeyAnswer { at: NOW, code, client: None }
    }

    fn holder(number: u32) -> KeyHolder {
        let id = Uuid::from_u128(u128::from(number));
        KeyHolder { key_id: id.into(), organisation_id: id.into() }
    }

    #[test]
    fn answers_returned_again_and_again_stay_within_their_bound() {
        let answers = KeyAnswers::default();
        for round in 0..20_u16 {
            for number in 0..u32::try_from(COUNTERS_MAX).unwrap() {
                answers.note(holder(number), answer(AnswerCode(400 + round)), &[]);
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
        answers.note(holder(1), answer(CREATED), &[]);
        answers.give_back(&answers.take());
        answers.note(holder(1), answer(CREATED), &[]);
        assert_eq!(answers.take(), [(holder(1), ((NOW.date(), CREATED, ""), 2))]);
    }

    #[test]
    fn the_last_client_of_a_key_is_kept_whichever_thread_saw_it_and_what_is_given_back_is_no_later_one() {
        let answers = KeyAnswers::default();
        let client = |name: &str| KeyClient { address: None, program: ClientProgram::of(name.as_bytes()) };
        let note = |seconds: i64, name: &str| {
            let at = NOW + time::Duration::seconds(seconds);
            answers.note(holder(1), KeyAnswer { at, client: Some(client(name)), ..answer(CREATED) }, &[]);
        };
        std::thread::scope(|scope| {
            scope.spawn(|| note(2, "last")).join().unwrap();
            scope.spawn(|| note(1, "first")).join().unwrap();
        });
        let taken = answers.take_clients();
        assert_eq!(taken, [(holder(1), (NOW + time::Duration::seconds(2), client("last")))]);
        note(3, "later");
        answers.give_back_clients(&taken);
        assert_eq!(answers.take_clients()[0].1.1, client("later"));
        for number in 0..u32::try_from(COUNTERS_MAX).unwrap() + 10 {
            answers.note(holder(number), KeyAnswer { client: Some(client("many")), ..answer(CREATED) }, &[]);
        }
        assert_eq!(answers.take_clients().len(), COUNTERS_MAX);
    }
}
