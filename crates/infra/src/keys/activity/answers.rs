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
use intake_domain::{AnswerCode, KeyAnswer, KeyClient, KeyHolder, Zone};
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use crate::keys::ids_of;
use crate::organisations::zone_of;
use crate::schema::organisations;

/// Each thread counts in a shard of its own, so that busy workers do not wait for each other.
const SHARDS: usize = 16;
/// Counters, and clients, in each shard; further ones are not kept until the next write.
const COUNTERS_MAX: usize = 5_000;

/// Subject of one counter of a key: answers in a quarter of an hour with a code, or those of them that named a field.
pub(crate) type Counted = (Quarter, AnswerCode, &'static str);

/// A quarter of an hour. It lies in one day wherever that begins: the offsets of all zones are multiples of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Quarter(i64);

impl Quarter {
    const SECONDS: i64 = 15 * 60;

    pub(crate) fn holding(at: OffsetDateTime) -> Self {
        Self(at.unix_timestamp().div_euclid(Self::SECONDS))
    }

    fn day(self, zone: Zone) -> Date {
        let start = OffsetDateTime::from_unix_timestamp(self.0.saturating_mul(Self::SECONDS));
        zone.day(start.unwrap_or(OffsetDateTime::UNIX_EPOCH))
    }
}

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
        let quarter = Quarter::holding(at);
        let mut gathered = lock(shard);
        for field in std::iter::once(&"").chain(fields) {
            self.add(&mut gathered.counts, (holder, (quarter, code, field)), 1);
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
    let zones = zones(connection, &organisations)?;
    let (mut days, mut local_days) = (vec![], vec![]);
    let (mut statuses, mut fields, mut counts) = (vec![], vec![], vec![]);
    for (organisation, (_, ((quarter, code, field), count))) in organisations.iter().zip(answers) {
        days.push(quarter.day(Zone::default()));
        local_days.push(quarter.day(zones.get(organisation).copied().unwrap_or_default()));
        statuses.push(i32::from(code.0));
        fields.push(*field);
        counts.push(*count);
    }
    sql_query(
        "INSERT INTO key_answers (organisation_id, key_id, day, local_day, status, field, count)
         SELECT organisation_id, key_id, day, local_day, status, field, sum(count)
         FROM unnest($1, $2, $3, $4, $5, $6, $7)
            AS counted (organisation_id, key_id, day, local_day, status, field, count)
         GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
         ON CONFLICT (organisation_id, key_id, day, local_day, status, field) DO UPDATE
         SET count = key_answers.count + excluded.count",
    )
    .bind::<Array<SqlUuid>, _>(organisations)
    .bind::<Array<SqlUuid>, _>(keys)
    .bind::<Array<SqlDate>, _>(days)
    .bind::<Array<SqlDate>, _>(local_days)
    .bind::<Array<Integer>, _>(statuses)
    .bind::<Array<Text>, _>(fields)
    .bind::<Array<BigInt>, _>(counts)
    .execute(connection)
    .map(drop)
}

/// The zones of these organisations. Those of the counts are not known before, because a zone can change.
fn zones(connection: &mut PgConnection, organisations: &[Uuid]) -> QueryResult<HashMap<Uuid, Zone>> {
    let named = organisations::table.filter(organisations::id.eq_any(organisations));
    let found = named.select((organisations::id, organisations::time_zone)).load::<(Uuid, String)>(connection)?;
    Ok(found.into_iter().map(|(id, zone)| (id, zone_of(&zone))).collect())
}

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection;
    use intake_domain::ClientProgram;
    use intake_test_support::TestDatabase;
    use time::macros::datetime;

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
        assert_eq!(answers.take(), [(holder(1), ((Quarter::holding(NOW), CREATED, ""), 2))]);
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

    /// The zones of organisations, a moment, and the days that it is there.
    const LOCAL_DAYS: [(&str, OffsetDateTime, &str); 14] = [
        ("UTC", datetime!(2026-03-01 23:30 UTC), "2026-03-01"),
        ("Australia/Sydney", datetime!(2026-03-01 23:30 UTC), "2026-03-02"),
        ("Australia/Adelaide", datetime!(2026-03-01 23:30 UTC), "2026-03-02"),
        ("Australia/Perth", datetime!(2026-03-01 23:30 UTC), "2026-03-02"),
        ("America/New_York", datetime!(2026-03-01 4:59:59 UTC), "2026-02-28"),
        ("Australia/Adelaide", datetime!(2026-03-01 13:29:59 UTC), "2026-03-01"),
        ("Australia/Adelaide", datetime!(2026-03-01 13:30 UTC), "2026-03-02"),
        ("Asia/Kathmandu", datetime!(2026-03-01 18:14:59 UTC), "2026-03-01"),
        ("Asia/Kathmandu", datetime!(2026-03-01 18:15 UTC), "2026-03-02"),
        // Sydney's clocks go forward on 4 October and back on 5 April.
        ("Australia/Sydney", datetime!(2026-10-03 14:00 UTC), "2026-10-04"),
        ("Australia/Sydney", datetime!(2026-10-04 12:59:59 UTC), "2026-10-04"),
        ("Australia/Sydney", datetime!(2026-10-04 13:00 UTC), "2026-10-05"),
        ("Australia/Sydney", datetime!(2026-04-05 13:59:59 UTC), "2026-04-05"),
        ("Australia/Sydney", datetime!(2026-04-05 14:00 UTC), "2026-04-06"),
    ];

    #[test]
    fn answers_are_counted_by_the_day_in_utc_and_in_the_zone_of_the_organisation() {
        let (database, answers) = (TestDatabase::new(), KeyAnswers::default());
        let mut connection = database.connect();
        for (number, (zone, at, _)) in (0..).zip(LOCAL_DAYS) {
            let id = holder(number).organisation_id;
            let add = format!("INSERT INTO organisations (id, name, time_zone) VALUES ('{id}', 'Clinic', '{zone}')");
            connection.batch_execute(&add).unwrap();
            answers.note(holder(number), KeyAnswer { at, ..answer(CREATED) }, &["email"]);
        }
        // With the grants of the service.
        let mut service = PgConnection::establish(database.service.expose()).unwrap();
        write_answers(&mut service, &answers.take()).unwrap();
        for (number, (zone, at, local_day)) in (0..).zip(LOCAL_DAYS) {
            let (id, day) = (holder(number).organisation_id, at.date());
            let days = format!("day = '{day}' AND local_day = '{local_day}'");
            let counted = format!("key_answers WHERE organisation_id = '{id}' AND {days} AND count = 1");
            assert_eq!(database.count(&counted), 2, "{zone}, {at}");
        }
        assert_eq!(database.count("key_answers"), 2 * i64::try_from(LOCAL_DAYS.len()).unwrap());
    }

    #[test]
    fn counts_of_a_day_are_one_row_and_stay_on_their_day_when_the_zone_is_changed() {
        let (database, answers) = (TestDatabase::new(), KeyAnswers::default());
        let (mut connection, id) = (database.connect(), holder(1).organisation_id);
        let add =
            format!("INSERT INTO organisations (id, name, time_zone) VALUES ('{id}', 'Clinic', 'Australia/Perth')");
        connection.batch_execute(&add).unwrap();
        let mut write = |moments: &[OffsetDateTime]| {
            moments.iter().for_each(|at| answers.note(holder(1), KeyAnswer { at: *at, ..answer(CREATED) }, &[]));
            write_answers(&mut connection, &answers.take()).unwrap();
        };
        write(&[datetime!(2026-03-01 16:00 UTC), datetime!(2026-03-01 18:00 UTC), datetime!(2026-03-01 23:59 UTC)]);
        write(&[datetime!(2026-03-01 16:00 UTC)]);
        database.connect().batch_execute("UPDATE organisations SET time_zone = 'UTC'").unwrap();
        write(&[datetime!(2026-03-01 23:59 UTC)]);
        assert_eq!(
            database.count("key_answers WHERE day = '2026-03-01' AND local_day = '2026-03-02' AND count = 4"),
            1
        );
        assert_eq!(
            database.count("key_answers WHERE day = '2026-03-01' AND local_day = '2026-03-01' AND count = 1"),
            1
        );
        assert_eq!(database.count("key_answers"), 2);
    }
}
