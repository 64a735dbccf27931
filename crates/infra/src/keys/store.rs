//! Organisations and their API keys, over Diesel.

use async_trait::async_trait;
use diesel::data_types::PgInterval;
use diesel::prelude::*;
use intake_domain::{
    ACTIVE_KEYS_MAX, Action, AddKeyOutcome, AnswerCount, ChangeKeyOutcome, ClearMarkOutcome, Deed, ExpiringKey,
    KeyDigest, KeyHolder, KeyId, KeyNote, KeyRecord, KeyStore, Name, NewKey, Organisation, OrganisationId,
    REFUSALS_KEPT, Refusal, RefusalReason, RevokeOutcome, StoreError,
};
use time::{Date, OffsetDateTime};
use uuid::Uuid;

use crate::audit::log::{name_of, record};
use crate::database::pool::Database;
use crate::diesel_errors::{is_foreign_key_violation, is_unique_violation};
use crate::keys::description::{rename, write_note};
use crate::keys::expiring;
use crate::keys::homes::{self, KeyHomes};
use crate::keys::uses::{KeyUses, ids};
use crate::schema::{api_keys, key_answers, key_refusals, key_uses, organisations};

/// The port [`KeyStore`] over PostgreSQL.
pub struct PostgresKeyStore {
    database: Database,
    uses: KeyUses,
}

impl PostgresKeyStore {
    /// A store over this pool, which notes the uses of keys in `uses`.
    #[must_use]
    pub fn new(database: Database, uses: KeyUses) -> Self {
        Self { database, uses }
    }
}

#[async_trait]
impl KeyStore for PostgresKeyStore {
    fn note_sent_in_clear(&self, key: &KeyDigest, at: OffsetDateTime, request_id: &str) {
        self.uses.note_sent_in_clear(key, at, request_id);
    }

    fn note_refusal(&self, key: &KeyDigest, refusal: Refusal) {
        self.uses.note_refusal(key, refusal);
    }

    fn note_answer(
        &self,
        key: &KeyDigest,
        at: OffsetDateTime,
        status: u16,
        fields: &[&'static str],
    ) -> Option<KeyHolder> {
        let holder = self.uses.homes.holder(key)?;
        self.uses.answers.note(holder, at, status, fields);
        Some(holder)
    }

    async fn answers(
        &self,
        organisation: OrganisationId,
        key: KeyId,
        since: Date,
    ) -> Result<Vec<AnswerCount>, StoreError> {
        let (organisation, key) = (*organisation.as_uuid(), *key.as_uuid());
        let found = self.database.run(move |connection| {
            let of_key = key_answers::table
                .filter(key_answers::organisation_id.eq(organisation).and(key_answers::key_id.eq(key)))
                .filter(key_answers::day.ge(since))
                .order((key_answers::day, key_answers::status, key_answers::field));
            let columns = (key_answers::day, key_answers::status, key_answers::field, key_answers::count);
            of_key.select(columns).load::<(Date, i32, String, i64)>(connection)
        });
        let answer = |(day, status, field, count): (Date, i32, String, i64)| AnswerCount {
            day,
            status: u16::try_from(status).unwrap_or_default(),
            field: Some(field).filter(|field| !field.is_empty()),
            count: u64::try_from(count).unwrap_or_default(),
        };
        Ok(found.await?.into_iter().map(answer).collect())
    }

    async fn refusals(&self, organisation: OrganisationId, key: KeyId) -> Result<Vec<Refusal>, StoreError> {
        let (organisation, key) = (*organisation.as_uuid(), *key.as_uuid());
        let found = self.database.run(move |connection| {
            let newest_first = key_refusals::table
                .filter(key_refusals::organisation_id.eq(organisation).and(key_refusals::key_id.eq(key)))
                .order((key_refusals::at.desc(), key_refusals::request_id.desc()))
                .limit(i64::try_from(REFUSALS_KEPT).unwrap_or(i64::MAX));
            let columns = (key_refusals::at, key_refusals::status, key_refusals::reason, key_refusals::request_id);
            newest_first.select(columns).load::<(OffsetDateTime, i32, String, String)>(connection)
        });
        let refusal = |(at, status, reason, request_id): (OffsetDateTime, i32, String, String)| {
            let status = u16::try_from(status).unwrap_or_default();
            Refusal { at, status, reason: RefusalReason::named(&reason), request_id }
        };
        Ok(found.await?.into_iter().map(refusal).collect())
    }

    async fn rename(
        &self,
        organisation: OrganisationId,
        key: KeyId,
        name: &Name,
        deed: &Deed,
    ) -> Result<ChangeKeyOutcome, StoreError> {
        let (organisation, key) = (*organisation.as_uuid(), *key.as_uuid());
        let (name, deed) = (name.clone(), deed.clone());
        self.database.run(move |connection| rename(connection, organisation, key, &name, &deed)).await
    }

    async fn write_note(
        &self,
        organisation: OrganisationId,
        key: KeyId,
        note: &KeyNote,
        deed: &Deed,
    ) -> Result<ChangeKeyOutcome, StoreError> {
        let (organisation, key) = (*organisation.as_uuid(), *key.as_uuid());
        let (note, deed) = (note.clone(), deed.clone());
        self.database.run(move |connection| write_note(connection, organisation, key, &note, &deed)).await
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

    async fn add_key(&self, key: &NewKey, deed: &Deed) -> Result<AddKeyOutcome, StoreError> {
        let (key, deed) = (key.clone(), deed.clone());
        let added = self.database.run(move |connection| {
            let added = connection.transaction(|connection| add_key(connection, &key, &deed));
            // Errors are sorted outside the transaction, which an error must end.
            match added {
                // Where keys are divided among nodes, only their homes are unique everywhere.
                Err(error) if is_unique_violation(&error) => Ok(AddKeyOutcome::AlreadyThere),
                Err(error) if is_foreign_key_violation(&error) => Ok(AddKeyOutcome::NoSuchOrganisation),
                Err(diesel::result::Error::RollbackTransaction) => Ok(AddKeyOutcome::TooMany),
                other => other,
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
            let of_key = key_uses::key_id.eq(api_keys::id).and(key_uses::organisation_id.eq(api_keys::organisation_id));
            let oldest_first = api_keys::table
                .left_join(key_uses::table.on(of_key))
                .filter(api_keys::organisation_id.eq(id))
                .order((api_keys::created_at, api_keys::id));
            oldest_first.select(KeyRow::as_select()).load(connection).map(Some)
        });
        Ok(found.await?.map(|rows| rows.into_iter().map(KeyRecord::from).collect()))
    }

    async fn key(&self, organisation: OrganisationId, key: KeyId) -> Result<Option<KeyRecord>, StoreError> {
        let (organisation, key) = (*organisation.as_uuid(), *key.as_uuid());
        let found = self.database.run(move |connection| {
            let of_key = key_uses::key_id.eq(api_keys::id).and(key_uses::organisation_id.eq(api_keys::organisation_id));
            let own = api_keys::table
                .left_join(key_uses::table.on(of_key))
                .filter(api_keys::id.eq(key).and(api_keys::organisation_id.eq(organisation)));
            own.select(KeyRow::as_select()).first(connection).optional()
        });
        Ok(found.await?.map(KeyRecord::from))
    }

    async fn holder(&self, key: &KeyDigest, now: OffsetDateTime) -> Result<Option<KeyHolder>, StoreError> {
        let (key, homes) = (*key, self.uses.homes.clone());
        self.database.run(move |connection| holder(connection, &homes, &key, now)).await
    }

    async fn claim_expiring(&self, now: OffsetDateTime) -> Result<Vec<ExpiringKey>, StoreError> {
        self.database.run(move |connection| expiring::claim(connection, now)).await
    }

    async fn clear_sent_in_clear(&self, key: KeyId, deed: &Deed) -> Result<ClearMarkOutcome, StoreError> {
        let (id, deed) = (*key.as_uuid(), deed.clone());
        self.database.run(move |connection| clear_sent_in_clear(connection, id, &deed)).await
    }

    async fn revoke(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        deed: &Deed,
    ) -> Result<RevokeOutcome, StoreError> {
        let (id, within, deed) = (*key.as_uuid(), within.map(|organisation| *organisation.as_uuid()), deed.clone());
        self.database.run(move |connection| revoke(connection, id, within, &deed)).await
    }
}

fn add_key(connection: &mut PgConnection, key: &NewKey, deed: &Deed) -> QueryResult<AddKeyOutcome> {
    if let Some(replacement) = key.replaces {
        let replaced =
            api_keys::table.find((key.organisation_id.as_uuid(), replacement.key.as_uuid())).filter(is_active(deed.at));
        if !diesel::select(diesel::dsl::exists(replaced)).get_result::<bool>(connection)? {
            return Ok(AddKeyOutcome::NothingToReplace);
        }
    }
    let digest = key.digest.as_bytes().as_slice();
    let ends_after =
        key.replaces.map(|replacement| PgInterval::from_microseconds(microseconds(replacement.ends_after)));
    let row = (
        api_keys::id.eq(key.id.as_uuid()),
        api_keys::organisation_id.eq(key.organisation_id.as_uuid()),
        api_keys::name.eq(key.name.as_str()),
        api_keys::digest.eq(digest),
        api_keys::hint.eq(&key.hint),
        api_keys::created_at.eq(key.created_at),
        api_keys::created_by.eq(name_of(&deed.actor)),
        api_keys::expires_at.eq(key.expires_at),
        api_keys::replaces.eq(key.replaces.map(|replacement| *replacement.key.as_uuid())),
        api_keys::replaced_ends_after.eq(ends_after),
    );
    if diesel::insert_into(api_keys::table).values(row).on_conflict_do_nothing().execute(connection)? > 0 {
        if active_keys(connection, *key.organisation_id.as_uuid(), deed.at)? > i64::from(ACTIVE_KEYS_MAX) {
            return Err(diesel::result::Error::RollbackTransaction);
        }
        homes::write(connection, key)?;
        let action = if key.replaces.is_some() { Action::KeyReplaced } else { Action::KeyCreated };
        record(connection, *key.organisation_id.as_uuid(), action, key.name.as_str(), deed)?;
        return Ok(AddKeyOutcome::Added);
    }
    // The row is this very key if an earlier run of this work was committed and its answer lost.
    let same = api_keys::table.find((key.organisation_id.as_uuid(), key.id.as_uuid()));
    let same = same.filter(api_keys::digest.eq(digest));
    let is_same = diesel::select(diesel::dsl::exists(same)).get_result(connection)?;
    Ok(if is_same { AddKeyOutcome::Added } else { AddKeyOutcome::AlreadyThere })
}

fn clear_sent_in_clear(connection: &mut PgConnection, id: Uuid, deed: &Deed) -> QueryResult<ClearMarkOutcome> {
    connection.transaction(|connection| {
        let Some((organisation, name)) = named(connection, id, None)? else {
            return Ok(ClearMarkOutcome::NotFound);
        };
        let marked = key_uses::table.find((organisation, id)).filter(key_uses::sent_in_clear_at.is_not_null());
        let cleared = key_uses::sent_in_clear_at.eq(None::<OffsetDateTime>);
        if diesel::update(marked).set(cleared).execute(connection)? == 0 {
            return Ok(ClearMarkOutcome::NotMarked);
        }
        record(connection, organisation, Action::KeyMarkCleared, &name, deed)?;
        Ok(ClearMarkOutcome::Cleared)
    })
}

fn revoke(connection: &mut PgConnection, id: Uuid, within: Option<Uuid>, deed: &Deed) -> QueryResult<RevokeOutcome> {
    connection.transaction(|connection| {
        let Some((organisation, name)) = named(connection, id, within)? else {
            return Ok(RevokeOutcome::NotFound);
        };
        let key = api_keys::table.find((organisation, id));
        let active = key.filter(api_keys::revoked_at.is_null());
        let change = (api_keys::revoked_at.eq(deed.at), api_keys::revoked_by.eq(name_of(&deed.actor)));
        if diesel::update(active).set(change).execute(connection)? > 0 {
            record(connection, organisation, Action::KeyRevoked, &name, deed)?;
            return Ok(RevokeOutcome::Revoked);
        }
        let revoked_at = key.select(api_keys::revoked_at.assume_not_null());
        Ok(RevokeOutcome::AlreadyRevoked { at: revoked_at.first(connection)? })
    })
}

/// The organisation that the key belongs to, which must be the given one, and its name.
fn named(connection: &mut PgConnection, key: Uuid, within: Option<Uuid>) -> QueryResult<Option<(Uuid, String)>> {
    let Some(organisation) = within.map_or_else(|| homes::organisation(connection, key), |within| Ok(Some(within)))?
    else {
        return Ok(None);
    };
    let name = api_keys::table.find((organisation, key)).select(api_keys::name).first(connection).optional()?;
    Ok(name.map(|name| (organisation, name)))
}

fn holder(
    connection: &mut PgConnection,
    homes: &KeyHomes,
    key: &KeyDigest,
    now: OffsetDateTime,
) -> QueryResult<Option<KeyHolder>> {
    homes.learn(connection, [key])?;
    let Some(holder) = homes.holder(key) else { return Ok(None) };
    let active = api_keys::table.find(ids(&holder)).filter(is_active(now));
    let is_active = diesel::select(diesel::dsl::exists(active)).get_result::<bool>(connection)?;
    Ok(is_active.then_some(holder))
}

fn active_keys(connection: &mut PgConnection, organisation: Uuid, now: OffsetDateTime) -> QueryResult<i64> {
    let of_organisation = api_keys::table.filter(api_keys::organisation_id.eq(organisation));
    of_organisation.filter(is_active(now)).count().get_result(connection)
}

/// The same as [`intake_domain::KeyStatus::is_active`], as a condition on the stored keys.
#[diesel::dsl::auto_type]
fn is_active(now: OffsetDateTime) -> _ {
    let is_within_its_time = api_keys::expires_at.is_null().or(api_keys::expires_at.assume_not_null().gt(now));
    api_keys::revoked_at.is_null().and(is_within_its_time)
}

fn microseconds(duration: time::Duration) -> i64 {
    i64::try_from(duration.whole_microseconds()).unwrap_or(i64::MAX)
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
    created_by: Option<String>,
    revoked_by: Option<String>,
    replaces: Option<Uuid>,
    note: Option<String>,
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
            created_by: row.created_by,
            revoked_at: row.revoked_at,
            revoked_by: row.revoked_by,
            replaces: row.replaces.map(KeyId::from),
            note: row.note.unwrap_or_default(),
            sent_in_clear_at: row.sent_in_clear_at,
        }
    }
}
