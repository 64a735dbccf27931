//! What people call a key and know about it. A revoked key stays as it was: the database lets nobody change it.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{Action, AuditContext, AuditedKey, ChangeKeyOutcome, KeyNote, Name};
use uuid::Uuid;

use crate::audit::log::record_about_key;
use crate::members::permission::assert_manages_keys;
use crate::schema::api_keys;

/// Gives the key another name. The record keeps both.
pub(crate) fn rename(
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
pub(crate) fn write_note(
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

/// What people call a key and know about it, and how entries about it name it.
struct Changeable {
    name: String,
    note: Option<String>,
    audited: AuditedKey,
}

/// The organisation's key, if it was not revoked; nobody else changes it until the end of the transaction.
fn locked(connection: &mut PgConnection, organisation: Uuid, key: Uuid) -> QueryResult<Option<Changeable>> {
    let changeable = api_keys::table.find((organisation, key)).filter(api_keys::revoked_at.is_null());
    let columns = (api_keys::name, api_keys::note, api_keys::hint);
    let found = changeable.select(columns).for_update().first::<(String, Option<String>, String)>(connection);
    let changeable = |(name, note, hint)| Changeable { name, note, audited: AuditedKey { id: key.into(), hint } };
    Ok(found.optional()?.map(changeable))
}

/// Why there is nothing to change.
fn not_changed(connection: &mut PgConnection, organisation: Uuid, key: Uuid) -> QueryResult<ChangeKeyOutcome> {
    let own = api_keys::table.find((organisation, key));
    let exists = diesel::select(diesel::dsl::exists(own)).get_result::<bool>(connection)?;
    Ok(if exists { ChangeKeyOutcome::Revoked } else { ChangeKeyOutcome::NotFound })
}
