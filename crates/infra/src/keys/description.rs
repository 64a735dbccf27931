//! The name of a key and the note about it. A revoked key stays as it was: the database lets nobody change it.

use async_trait::async_trait;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{
    Action, AuditContext, AuditedKey, ChangeKeyOutcome, ClearMarkOutcome, KeyDescriptionStore, KeyId, KeyNote, Name,
    OrganisationId, StoreError,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::accounts::permission::assert_manages_keys;
use crate::audit::log::record_about_key;
use crate::database::connecting::share::Share;
use crate::keys::PostgresKeyStore;
use crate::keys::named::named;
use crate::schema::{api_keys, key_uses};

#[async_trait]
impl KeyDescriptionStore for PostgresKeyStore {
    async fn rename(
        &self,
        organisation: OrganisationId,
        key: KeyId,
        name: &Name,
        audit: &AuditContext,
    ) -> Result<ChangeKeyOutcome, StoreError> {
        let (organisation, key) = (*organisation.as_uuid(), *key.as_uuid());
        let (name, audit) = (name.clone(), audit.clone());
        self.0
            .run(Share::Of(organisation), move |connection| rename(connection, organisation, key, &name, &audit))
            .await
    }

    async fn write_note(
        &self,
        organisation: OrganisationId,
        key: KeyId,
        note: &KeyNote,
        audit: &AuditContext,
    ) -> Result<ChangeKeyOutcome, StoreError> {
        let (organisation, key) = (*organisation.as_uuid(), *key.as_uuid());
        let (note, audit) = (note.clone(), audit.clone());
        self.0
            .run(Share::Of(organisation), move |connection| write_note(connection, organisation, key, &note, &audit))
            .await
    }

    async fn clear_sent_in_clear(&self, key: KeyId, audit: &AuditContext) -> Result<ClearMarkOutcome, StoreError> {
        let (id, audit) = (*key.as_uuid(), audit.clone());
        self.0.run(Share::Common, move |connection| clear_sent_in_clear(connection, id, &audit)).await
    }
}

/// Gives the key another name. The record keeps both.
fn rename(
    connection: &mut PgConnection,
    organisation: Uuid,
    key: Uuid,
    name: &Name,
    audit: &AuditContext,
) -> QueryResult<ChangeKeyOutcome> {
    connection.transaction(|connection| {
        assert_manages_keys(connection, organisation, audit)?;
        let Some(Changeable { name: old, audited, .. }) = locked(connection, organisation, key)? else {
            return not_changed(connection, organisation, key);
        };
        if old == name.as_str() {
            return Ok(ChangeKeyOutcome::Unchanged);
        }
        diesel::update(api_keys::table.find((organisation, key)))
            .set(api_keys::name.eq(name.as_str()))
            .execute(connection)?;
        let subject = format!("{old} → {name}");
        record_about_key(connection, organisation, Action::KeyRenamed, &subject, &audited, audit)?;
        Ok(ChangeKeyOutcome::Changed)
    })
}

/// Writes another note about the key, or none.
fn write_note(
    connection: &mut PgConnection,
    organisation: Uuid,
    key: Uuid,
    note: &KeyNote,
    audit: &AuditContext,
) -> QueryResult<ChangeKeyOutcome> {
    connection.transaction(|connection| {
        assert_manages_keys(connection, organisation, audit)?;
        let Some(Changeable { name, note: old, audited }) = locked(connection, organisation, key)? else {
            return not_changed(connection, organisation, key);
        };
        if old.unwrap_or_default() == note.as_str() {
            return Ok(ChangeKeyOutcome::Unchanged);
        }
        let text = Some(note.as_str()).filter(|text| !text.is_empty());
        diesel::update(api_keys::table.find((organisation, key))).set(api_keys::note.eq(text)).execute(connection)?;
        record_about_key(connection, organisation, Action::KeyNoted, &name, &audited, audit)?;
        Ok(ChangeKeyOutcome::Changed)
    })
}

fn clear_sent_in_clear(connection: &mut PgConnection, id: Uuid, audit: &AuditContext) -> QueryResult<ClearMarkOutcome> {
    let Some((organisation, name, audited)) = named(connection, id, None)? else {
        return Ok(ClearMarkOutcome::NotFound);
    };
    connection.transaction(|connection| {
        let marked = key_uses::table.find((organisation, id)).filter(key_uses::sent_in_clear_at.is_not_null());
        let cleared = key_uses::sent_in_clear_at.eq(None::<OffsetDateTime>);
        if diesel::update(marked).set(cleared).execute(connection)? == 0 {
            return Ok(ClearMarkOutcome::NotMarked);
        }
        record_about_key(connection, organisation, Action::KeyMarkCleared, &name, &audited, audit)?;
        Ok(ClearMarkOutcome::Cleared)
    })
}

/// The name of a key, the note about it, and how audit entries name it.
struct Changeable {
    name: String,
    note: Option<String>,
    audited: AuditedKey,
}

/// The organisation's key, if it was not revoked, locked until the end of the transaction.
fn locked(connection: &mut PgConnection, organisation: Uuid, key: Uuid) -> QueryResult<Option<Changeable>> {
    let changeable = api_keys::table.find((organisation, key)).filter(api_keys::revoked_at.is_null());
    let columns = (api_keys::name, api_keys::note, api_keys::hint);
    let found = changeable.select(columns).for_update().first::<(String, Option<String>, String)>(connection);
    let changeable = |(name, note, hint)| Changeable { name, note, audited: AuditedKey { id: key.into(), hint } };
    Ok(found.optional()?.map(changeable))
}

/// Returns why there is nothing to change.
fn not_changed(connection: &mut PgConnection, organisation: Uuid, key: Uuid) -> QueryResult<ChangeKeyOutcome> {
    let own = api_keys::table.find((organisation, key));
    let exists = diesel::select(diesel::dsl::exists(own)).get_result::<bool>(connection)?;
    Ok(if exists { ChangeKeyOutcome::Revoked } else { ChangeKeyOutcome::NotFound })
}
