//! Whose each key is: found in the database once, and remembered, because it never changes. Whether a key is active is never
//! remembered.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{KeyDigest, KeyHolder, NewKey};
use uuid::Uuid;

use crate::schema::key_homes;

/// How many keys are remembered, about fifteen megabytes. When there is no room left, all are forgotten, and the busy ones are
/// soon known again.
const KNOWN_MAX: usize = 100_000;

/// What is remembered. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct KeyHomes(Arc<RwLock<HashMap<KeyDigest, KeyHolder>>>);

impl KeyHomes {
    /// Whose the key is, if it is known to exist.
    pub(crate) fn holder(&self, key: &KeyDigest) -> Option<KeyHolder> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }

    /// Looks up those of the keys that are not known yet. A key that nobody has stays unknown.
    pub(crate) fn learn<'a>(
        &self,
        connection: &mut PgConnection,
        keys: impl IntoIterator<Item = &'a KeyDigest>,
    ) -> QueryResult<()> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut unknown: HashMap<&[u8], &KeyDigest> = HashMap::new();
        unknown.extend(
            keys.into_iter().filter(|key| !known.contains_key(*key)).map(|key| (key.as_bytes().as_slice(), key)),
        );
        drop(known);
        if unknown.is_empty() {
            return Ok(());
        }
        let digests: Vec<&[u8]> = unknown.keys().copied().collect();
        let found = key_homes::table.filter(key_homes::digest.eq_any(digests));
        for (digest, organisation, key) in found.load::<(Vec<u8>, Uuid, Uuid)>(connection)? {
            if let Some(asked) = unknown.get(digest.as_slice()) {
                self.remember(asked, KeyHolder { key_id: key.into(), organisation_id: organisation.into() });
            }
        }
        Ok(())
    }

    pub(crate) fn remember(&self, key: &KeyDigest, holder: KeyHolder) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(*key, holder);
    }
}

/// The organisation that the key belongs to.
pub(crate) fn organisation(connection: &mut PgConnection, key: Uuid) -> QueryResult<Option<Uuid>> {
    let home = key_homes::table.filter(key_homes::key_id.eq(key));
    home.select(key_homes::organisation_id).first(connection).optional()
}

/// Whether keys are divided among nodes, so that their homes are written down apart.
const ARE_WRITTEN: &str = "SELECT 1 FROM pg_class WHERE oid = 'key_homes'::regclass AND relkind = 'r'";

/// Writes down the home of a new key, unless the key itself says it.
pub(crate) fn write(connection: &mut PgConnection, key: &NewKey) -> QueryResult<()> {
    if diesel::sql_query(ARE_WRITTEN).execute(connection)? == 0 {
        return Ok(());
    }
    let home = (
        key_homes::digest.eq(key.digest.as_bytes().as_slice()),
        key_homes::organisation_id.eq(key.organisation_id.as_uuid()),
        key_homes::key_id.eq(key.id.as_uuid()),
    );
    diesel::insert_into(key_homes::table).values(home).execute(connection).map(drop)
}
