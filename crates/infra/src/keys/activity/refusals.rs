//! Requests that were refused: the last ones of each key, gathered in memory and written every few seconds by the
//! thread that writes the uses of keys. A request that is accepted has no part in it, and a flood of refused ones costs
//! no more memory or rows than the last of each key.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{Array, BigInt, Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use intake_domain::{KeyHolder, REFUSALS_KEPT, Refusal, RefusalReason};
use uuid::Uuid;

use crate::keys::ids_of;

/// Refusals that wait in memory to be written, of all keys together: about three megabytes. Those of further keys are
/// not kept.
const WAITING_MAX: usize = 10_000;

/// The last refusals of each key, by what is known of it.
pub(crate) struct LastRefusals<K> {
    of: HashMap<K, VecDeque<Refusal>>,
    waiting: usize,
}

impl<K> Default for LastRefusals<K> {
    fn default() -> Self {
        Self { of: HashMap::new(), waiting: 0 }
    }
}

impl<K: Copy + Eq + Hash> LastRefusals<K> {
    /// Keeps a refusal, in place of the key's oldest if there is no more room.
    pub(crate) fn add(&mut self, key: K, refusal: Refusal) {
        let is_full = self.waiting >= WAITING_MAX;
        if is_full && !self.of.contains_key(&key) {
            return;
        }
        let last = self.of.entry(key).or_default();
        if (is_full || last.len() >= REFUSALS_KEPT) && last.pop_front().is_some() {
            self.waiting -= 1;
        }
        last.push_back(refusal);
        self.waiting += 1;
    }

    /// Takes all that were kept.
    pub(crate) fn take(&mut self) -> Vec<(K, Refusal)> {
        self.waiting = 0;
        let all = self.of.drain().flat_map(|(key, last)| last.into_iter().map(move |refusal| (key, refusal)));
        all.collect()
    }

    /// Takes those of one key.
    pub(crate) fn take_of(&mut self, key: &K) -> VecDeque<Refusal> {
        let last = self.of.remove(key).unwrap_or_default();
        self.waiting -= last.len();
        last
    }

    /// Takes back what could not be written, as far as there is room before the later ones.
    pub(crate) fn give_back(&mut self, refusals: &[(K, Refusal)]) {
        for (key, refusal) in refusals.iter().rev() {
            if self.waiting >= WAITING_MAX {
                return;
            }
            let last = self.of.entry(*key).or_default();
            if last.len() < REFUSALS_KEPT {
                last.push_front(refusal.clone());
                self.waiting += 1;
            }
        }
    }
}

/// Stores the refusals of this instance, and removes those of the same keys that are no longer among the last. Doing it
/// twice changes nothing.
pub(crate) fn write_refusals(
    connection: &mut PgConnection,
    refusals: &[(KeyHolder, Refusal)],
    instance: &str,
) -> QueryResult<()> {
    let (organisations, keys) = ids_of(refusals);
    let (mut moments, mut request_ids, mut statuses, mut reasons) = (vec![], vec![], vec![], vec![]);
    let (mut addresses, mut fields, mut are_simulated) = (vec![], vec![], vec![]);
    for (_, refusal) in refusals {
        moments.push(refusal.at);
        request_ids.push(refusal.request_id.as_str());
        statuses.push(i32::from(refusal.code.0));
        reasons.push(refusal.reason.map_or("", RefusalReason::as_str));
        addresses.push(refusal.address.map(|address| address.to_string()));
        fields.push(refusal.fields.join(","));
        are_simulated.push(refusal.is_simulated);
    }
    // Nobody sees more of a key than its last ones.
    connection.transaction(|connection| {
        sql_query(
            "INSERT INTO key_refusals (organisation_id, key_id, at, request_id, status, reason, address, is_simulated,
                fields, instance)
             SELECT organisation, key, at, id, status, reason, address, is_simulated, string_to_array(fields, ','), $10
             FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)
                AS refused (organisation, key, at, id, status, reason, address, is_simulated, fields)
             ORDER BY 1, 2, 3, 4
             ON CONFLICT DO NOTHING",
        )
        .bind::<Array<SqlUuid>, _>(&organisations)
        .bind::<Array<SqlUuid>, _>(&keys)
        .bind::<Array<Timestamptz>, _>(moments)
        .bind::<Array<Text>, _>(request_ids)
        .bind::<Array<Integer>, _>(statuses)
        .bind::<Array<Text>, _>(reasons)
        .bind::<Array<Nullable<Text>>, _>(addresses)
        .bind::<Array<Bool>, _>(are_simulated)
        .bind::<Array<Text>, _>(fields)
        .bind::<Text, _>(instance)
        .execute(connection)?;
        remove_earlier(connection, &organisations, &keys)
    })
}

/// Removes those refusals of these keys that are no longer among the last.
fn remove_earlier(connection: &mut PgConnection, organisations: &[Uuid], keys: &[Uuid]) -> QueryResult<()> {
    sql_query(
        "DELETE FROM key_refusals WHERE organisation_id = ANY ($1) AND (organisation_id, key_id, at, request_id) IN (
                SELECT organisation_id, key_id, at, request_id FROM (
                    SELECT organisation_id, key_id, at, request_id, row_number() OVER (
                        PARTITION BY organisation_id, key_id ORDER BY at DESC, request_id DESC
                    ) AS place
                    FROM key_refusals
                    WHERE organisation_id = ANY ($1) AND (organisation_id, key_id) IN (SELECT * FROM unnest($1, $2))
                ) AS ranked WHERE place > $3
             )",
    )
    .bind::<Array<SqlUuid>, _>(organisations)
    .bind::<Array<SqlUuid>, _>(keys)
    .bind::<BigInt, _>(i64::try_from(REFUSALS_KEPT).unwrap_or(i64::MAX))
    .execute(connection)
    .map(drop)
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use intake_domain::AnswerCode;

    use super::*;

    fn refusal(number: usize) -> Refusal {
        let at = datetime!(2025-12-03 10:30 UTC);
        let request_id = number.to_string();
        let (code, reason) = (AnswerCode(422), Some(RefusalReason::Invalid));
        Refusal { at, code, reason, fields: vec![], is_simulated: false, address: None, request_id }
    }

    fn ids_of(taken: &[(u32, Refusal)]) -> Vec<&str> {
        taken.iter().map(|(_, refusal)| refusal.request_id.as_str()).collect()
    }

    #[test]
    fn of_a_flood_the_last_ones_stay() {
        let mut refusals = LastRefusals::default();
        for number in 0..1_000 {
            refusals.add(1, refusal(number));
        }
        let taken = refusals.take();
        assert_eq!(taken.len(), REFUSALS_KEPT);
        assert_eq!((ids_of(&taken)[0], ids_of(&taken)[99]), ("900", "999"));
        assert!(refusals.take().is_empty());
    }

    #[test]
    fn many_keys_fill_no_more_than_the_room_and_each_that_has_a_place_keeps_its_last() {
        let mut refusals = LastRefusals::default();
        for key in 0..1_000 {
            for number in 0..REFUSALS_KEPT {
                refusals.add(key, refusal(number));
            }
        }
        refusals.add(0, refusal(7_777));
        let taken = refusals.take();
        assert_eq!(taken.len(), WAITING_MAX);
        assert!(taken.iter().any(|(key, refusal)| *key == 0 && refusal.request_id == "7777"));
        for _ in 0..3 {
            refusals.give_back(&taken);
        }
        assert_eq!(refusals.take().len(), WAITING_MAX);
    }

    #[test]
    fn returned_answers_come_before_later_ones() {
        let mut refusals = LastRefusals::default();
        refusals.add(1, refusal(1));
        refusals.add(1, refusal(2));
        let taken = refusals.take();
        refusals.add(1, refusal(3));
        refusals.give_back(&taken);
        assert_eq!(ids_of(&refusals.take()), ["1", "2", "3"]);
    }
}
