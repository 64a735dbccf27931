//! Organisations and their API keys, over Diesel.

use async_trait::async_trait;
use diesel::dsl::now;
use diesel::prelude::*;
use diesel::sql_types::Timestamptz;
use intake_domain::{
    KeyDigest, KeyHolder, KeyId, KeyRecord, KeyRefusal, KeyStanding, KeyStore, NewKey, Organisation, OrganisationId,
    StoreError,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::Database;
use crate::diesel_errors::is_foreign_key_violation;
use crate::key_uses::KeyUses;
use crate::schema::{api_keys, key_uses, organisations};

/// The port [`KeyStore`] over PostgreSQL.
pub struct PostgresKeyStore {
    database: Database,
    uses: KeyUses,
}

impl PostgresKeyStore {
    /// A store over this pool, noting uses there.
    #[must_use]
    pub fn new(database: Database, uses: KeyUses) -> Self {
        Self { database, uses }
    }
}

#[async_trait]
impl KeyStore for PostgresKeyStore {
    async fn standing(&self, key: &KeyDigest) -> Result<KeyStanding, StoreError> {
        let digest = *key.as_bytes();
        let found = self.database.run(move |connection| {
            // The database's clock decides, as it does when a patient is created.
            let key = api_keys::table.filter(api_keys::digest.eq(digest.as_slice()));
            key.select((HolderRow::as_select(), now.into_sql::<Timestamptz>())).first(connection).optional()
        });
        let Some((key, asked_at)): Option<(HolderRow, OffsetDateTime)> = found.await? else {
            return Ok(KeyStanding::Refused(KeyRefusal::Unknown));
        };
        if key.revoked_at.is_some() {
            return Ok(KeyStanding::Refused(KeyRefusal::Revoked));
        }
        if key.expires_at.is_some_and(|end| end <= asked_at) {
            return Ok(KeyStanding::Refused(KeyRefusal::Expired));
        }
        let holder = KeyHolder { key_id: key.id.into(), organisation_id: key.organisation_id.into() };
        self.uses.note(holder, asked_at);
        Ok(KeyStanding::Active(holder))
    }

    fn note_sent_in_clear(&self, key: &KeyDigest, at: OffsetDateTime) {
        self.uses.note_sent_in_clear(key, at);
    }

    async fn add_organisation(&self, organisation: &Organisation) -> Result<(), StoreError> {
        let (id, name) = (*organisation.id.as_uuid(), organisation.name.to_string());
        let added = self.database.run(move |connection| {
            diesel::insert_into(organisations::table)
                .values((organisations::id.eq(id), organisations::name.eq(&name)))
                .on_conflict_do_nothing()
                .execute(connection)
        });
        added.await.map(|_| ())
    }

    async fn organisations(&self) -> Result<Vec<(OrganisationId, String)>, StoreError> {
        let found = self.database.run(|connection| {
            let oldest_first = organisations::table.order((organisations::created_at, organisations::id));
            oldest_first.select((organisations::id, organisations::name)).load::<(Uuid, String)>(connection)
        });
        Ok(found.await?.into_iter().map(|(id, name)| (id.into(), name)).collect())
    }

    async fn add_key(&self, key: &NewKey) -> Result<bool, StoreError> {
        let key = key.clone();
        let added = self.database.run(move |connection| {
            let row = (
                api_keys::id.eq(key.id.as_uuid()),
                api_keys::organisation_id.eq(key.organisation_id.as_uuid()),
                api_keys::name.eq(key.name.as_str()),
                api_keys::digest.eq(key.digest.as_bytes().as_slice()),
                api_keys::hint.eq(&key.hint),
                api_keys::created_at.eq(key.created_at),
                api_keys::expires_at.eq(key.expires_at),
            );
            // The id is given from outside: a second run after a lost answer changes nothing.
            match diesel::insert_into(api_keys::table).values(row).on_conflict_do_nothing().execute(connection) {
                Err(error) if is_foreign_key_violation(&error) => Ok(false),
                other => other.map(|_| true),
            }
        });
        added.await
    }

    async fn keys(&self, organisation: OrganisationId) -> Result<Option<Vec<KeyRecord>>, StoreError> {
        let id = *organisation.as_uuid();
        let found = self.database.run(move |connection| {
            let organisation = organisations::table.find(id).select(organisations::id).first::<Uuid>(connection);
            if organisation.optional()?.is_none() {
                return Ok(None);
            }
            let with_uses = key_uses::table
                .on(key_uses::key_id.eq(api_keys::id).and(key_uses::organisation_id.eq(api_keys::organisation_id)));
            let oldest_first = api_keys::table
                .left_join(with_uses)
                .filter(api_keys::organisation_id.eq(id))
                .order((api_keys::created_at, api_keys::id));
            oldest_first.select(KeyRow::as_select()).load(connection).map(Some)
        });
        Ok(found.await?.map(|rows| rows.into_iter().map(KeyRecord::from).collect()))
    }

    async fn revoke(&self, key: KeyId, at: OffsetDateTime) -> Result<Option<OffsetDateTime>, StoreError> {
        let id = *key.as_uuid();
        let revoked = self.database.run(move |connection| {
            let active = api_keys::table.find(id).filter(api_keys::revoked_at.is_null());
            diesel::update(active).set(api_keys::revoked_at.eq(at)).execute(connection)?;
            api_keys::table.find(id).select(api_keys::revoked_at).first::<Option<OffsetDateTime>>(connection).optional()
        });
        Ok(revoked.await?.flatten())
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = api_keys)]
struct HolderRow {
    id: Uuid,
    organisation_id: Uuid,
    expires_at: Option<OffsetDateTime>,
    revoked_at: Option<OffsetDateTime>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = api_keys)]
struct KeyRow {
    id: Uuid,
    name: String,
    hint: String,
    created_at: OffsetDateTime,
    expires_at: Option<OffsetDateTime>,
    revoked_at: Option<OffsetDateTime>,
    #[diesel(select_expression = key_uses::last_used_at.nullable())]
    last_used_at: Option<OffsetDateTime>,
    #[diesel(select_expression = key_uses::sent_in_clear_at.nullable())]
    sent_in_clear_at: Option<OffsetDateTime>,
}

impl From<KeyRow> for KeyRecord {
    fn from(row: KeyRow) -> Self {
        Self {
            id: row.id.into(),
            name: row.name,
            hint: row.hint,
            created_at: row.created_at,
            last_used_at: row.last_used_at,
            expires_at: row.expires_at,
            revoked_at: row.revoked_at,
            sent_in_clear_at: row.sent_in_clear_at,
        }
    }
}
