//! The holder of each key, its end, and the shard of the holder's patients. The database is asked once for each key,
//! because the holder never changes. The end, which only warns the holder, is looked up again when a use of the key is
//! written. Whether a key is active is never cached.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, PoisonError, RwLock};

use diesel::dsl::sql;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Nullable, Timestamptz};
use foldhash::quality::RandomState;
use intake_domain::{KeyDigest, KeyHolder, KeyPlace, NewKey, OrganisationId};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::cluster::parts::{Part, parts};
use crate::database::cluster::shards::Shards;
use crate::keys::ids;
use crate::schema::{api_keys, key_homes};

/// Number of keys that are remembered, about fifteen megabytes. When there is no room left, all are forgotten, and the
/// busy ones are soon known again.
const KNOWN_MAX: usize = 100_000;

/// The keys that are known, and the shards. Clones share both.
#[derive(Clone, Default)]
pub struct KeyDirectory {
    holders: Arc<RwLock<HashMap<KeyDigest, KeyHolder, BuildHasherDefault<OwnBytes>>>>,
    /// The ends of the keys that have one.
    ends: Arc<RwLock<HashMap<KeyHolder, OffsetDateTime, RandomState>>>,
    pub(crate) shards: Shards,
}

/// A digest is its own hash: only keys that exist are in the map, so nobody chooses what collides.
#[derive(Default)]
struct OwnBytes(u64);

impl Hasher for OwnBytes {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.first_chunk().map_or(0, |first| u64::from_ne_bytes(*first));
    }

    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

impl KeyDirectory {
    /// The holder of the key, if it is known to exist.
    pub(crate) fn holder(&self, key: &KeyDigest) -> Option<KeyHolder> {
        self.holders.read().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }

    /// The end of the key, if it is known to have one.
    pub(crate) fn end(&self, key: &KeyDigest) -> Option<OffsetDateTime> {
        let holder = self.holder(key)?;
        self.ends.read().unwrap_or_else(PoisonError::into_inner).get(&holder).copied()
    }

    /// Looks up those of the keys that are not known yet. A key that nobody has stays unknown.
    pub(crate) fn learn<'a>(
        &self,
        connection: &mut PgConnection,
        keys: impl IntoIterator<Item = &'a KeyDigest>,
    ) -> QueryResult<()> {
        let unknown = keys.into_iter().filter(|key| self.holder(key).is_none());
        let unknown: HashMap<&[u8], &KeyDigest> = unknown.map(|key| (key.as_bytes().as_slice(), key)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let digests: Vec<&[u8]> = unknown.keys().copied().collect();
        let found: Vec<(Vec<u8>, Uuid, Uuid, Option<OffsetDateTime>)> = match self.shards.is_spread() {
            // Another node may hold the end, which is looked up when the first use is written.
            true => key_homes::table
                .filter(key_homes::digest.eq_any(digests))
                .filter(key_homes::home.eq_any(unknown.values().map(|key| home(key))))
                .select((
                    key_homes::digest,
                    key_homes::organisation_id,
                    key_homes::key_id,
                    sql::<Nullable<Timestamptz>>("NULL"),
                ))
                .load(connection)?,
            false => api_keys::table
                .filter(api_keys::digest.eq_any(digests))
                .select((api_keys::digest, api_keys::organisation_id, api_keys::id, api_keys::expires_at))
                .load(connection)?,
        };
        for (digest, organisation, key, expires_at) in found {
            if let Some(asked) = unknown.get(digest.as_slice()) {
                let holder = KeyHolder { key_id: key.into(), organisation_id: organisation.into() };
                self.remember(asked, holder);
                self.note_end(holder, expires_at);
            }
        }
        Ok(())
    }

    /// Looks up the ends of these keys: the first use of another key may have set one.
    pub(crate) fn learn_ends(&self, connection: &mut PgConnection, keys: &[KeyHolder]) -> QueryResult<()> {
        let (organisations, keys): (Vec<_>, Vec<_>) = keys.iter().map(ids).unzip();
        let found = api_keys::table
            .filter(api_keys::organisation_id.eq_any(organisations).and(api_keys::id.eq_any(keys)))
            .select((api_keys::organisation_id, api_keys::id, api_keys::expires_at));
        for (organisation, key, expires_at) in found.load::<(Uuid, Uuid, Option<OffsetDateTime>)>(connection)? {
            self.note_end(KeyHolder { key_id: key.into(), organisation_id: organisation.into() }, expires_at);
        }
        Ok(())
    }

    fn note_end(&self, holder: KeyHolder, end: Option<OffsetDateTime>) {
        let known = self.ends.read().unwrap_or_else(PoisonError::into_inner).get(&holder).copied();
        if known == end {
            return;
        }
        let mut ends = self.ends.write().unwrap_or_else(PoisonError::into_inner);
        if ends.len() >= KNOWN_MAX {
            ends.clear();
        }
        match end {
            Some(at) => drop(ends.insert(holder, at)),
            None => drop(ends.remove(&holder)),
        }
    }

    fn remember(&self, key: &KeyDigest, holder: KeyHolder) {
        let mut known = self.holders.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(*key, holder);
    }
}

/// The value by which Citus distributes `key_homes`. A key is made so that it hashes to the shard of its organisation.
pub(crate) fn home(key: &KeyDigest) -> Uuid {
    key.as_bytes().first_chunk().copied().map_or(Uuid::nil(), Uuid::from_bytes)
}

/// The keys whose row in `key_homes` lies in the shard of this organisation.
pub(crate) fn place(shards: &Shards, organisation: OrganisationId) -> KeyPlace {
    let shards = shards.all();
    let own = Shards::place(&shards, *organisation.as_uuid());
    KeyPlace::new(move |key| Shards::place(&shards, home(key)) == own)
}

/// The organisation that the key belongs to. Not within a transaction, because a node that is away fails alone.
pub(crate) fn organisation(connection: &mut PgConnection, key: Uuid) -> QueryResult<Option<Uuid>> {
    let keys = api_keys::table.filter(api_keys::id.eq(key)).select(api_keys::organisation_id);
    let mut failed = match keys.first(connection).optional() {
        Err(error) => error,
        found => return found,
    };
    for Part { organisations, .. } in parts(connection)? {
        let of_part = keys.filter(api_keys::organisation_id.eq_any(organisations.unwrap_or_default()));
        match of_part.first(connection).optional() {
            Ok(None) => {}
            Err(error) => failed = error,
            found => return found,
        }
    }
    Err(failed)
}

/// Writes down the home of a new key, where keys are divided.
pub(crate) fn write(connection: &mut PgConnection, key: &NewKey) -> QueryResult<()> {
    let home = (
        key_homes::home.eq(home(&key.digest)),
        key_homes::digest.eq(key.digest.as_bytes().as_slice()),
        key_homes::organisation_id.eq(key.organisation_id.as_uuid()),
        key_homes::key_id.eq(key.id.as_uuid()),
    );
    diesel::insert_into(key_homes::table).values(home).execute(connection).map(drop)
}

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection;
    use intake_domain::{Environment, timestamp};
    use intake_test_support::{Clinic, TestDatabase};

    use super::*;

    #[test]
    fn an_end_that_is_set_later_is_learnt() {
        let database = TestDatabase::new();
        let clinic = Clinic::open(&database.service, Environment::Development);
        let ((id, key), (_, other)) = (clinic.key(), clinic.key());
        let (mut connection, directory) = (database.connect(), KeyDirectory::default());
        directory.learn(&mut connection, [&key.digest(), &other.digest()]).unwrap();
        assert_eq!(directory.end(&key.digest()), None);
        for end in ["2026-01-02T03:04:05.678Z", "2026-01-01T00:00:00.000Z"] {
            let set = format!("UPDATE api_keys SET expires_at = '{end}' WHERE id = '{id}'");
            connection.batch_execute(&set).unwrap();
            let holders = [&key, &other].map(|key| directory.holder(&key.digest()).unwrap());
            directory.learn_ends(&mut connection, &holders).unwrap();
            assert_eq!(directory.end(&key.digest()).map(timestamp).as_deref(), Some(end));
        }
        assert_eq!(directory.end(&other.digest()), None);
        let fresh = KeyDirectory::default();
        fresh.learn(&mut connection, [&key.digest()]).unwrap();
        assert_eq!(fresh.end(&key.digest()), directory.end(&key.digest()));
    }
}
