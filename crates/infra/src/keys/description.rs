//! The name of a key, the note about it, and whom to call. A revoked key stays as it was: the database lets nobody
//! change it.

use async_trait::async_trait;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{
    Action, AuditContext, AuditedKey, KeyDescriptionStore, KeyId, KeyText, ManageKeysError, OrganisationId,
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
    async fn describe(
        &self,
        organisation: OrganisationId,
        key: KeyId,
        text: KeyText,
        audit: &AuditContext,
    ) -> Result<bool, ManageKeysError> {
        let (organisation, key, audit) = (*organisation.as_uuid(), *key.as_uuid(), audit.clone());
        self.0
            .run(Share::Of(organisation), move |connection| describe(connection, organisation, key, &text, &audit))
            .await?
    }

    async fn clear_sent_in_clear(&self, key: KeyId, audit: &AuditContext) -> Result<bool, ManageKeysError> {
        let (id, audit) = (*key.as_uuid(), audit.clone());
        self.0.run(Share::Common, move |connection| clear_sent_in_clear(connection, id, &audit)).await?
    }
}

/// The columns of the texts, of which one is changed.
#[derive(AsChangeset, Default)]
#[diesel(table_name = api_keys)]
struct TextChange<'a> {
    name: Option<&'a str>,
    note: Option<Option<&'a str>>,
    contact: Option<Option<&'a str>>,
}

/// Writes another text about the key, or none. The record keeps both names.
fn describe(
    connection: &mut PgConnection,
    organisation: Uuid,
    key: Uuid,
    text: &KeyText,
    audit: &AuditContext,
) -> QueryResult<Result<bool, ManageKeysError>> {
    connection.transaction(|connection| {
        assert_manages_keys(connection, organisation, audit)?;
        let Some(Changeable { name, note, contact, audited }) = locked(connection, organisation, key)? else {
            return not_changed(connection, organisation, key);
        };
        let (is_new, change, action, subject) = match text {
            KeyText::Name(new) => {
                let change = TextChange { name: Some(new.as_str()), ..TextChange::default() };
                (name != new.as_str(), change, Action::KeyRenamed, format!("{name} → {new}"))
            }
            KeyText::Note(new) => {
                let new = stored(new.as_str());
                let change = TextChange { note: Some(new), ..TextChange::default() };
                (note.as_deref() != new, change, Action::KeyNoted, name)
            }
            KeyText::Contact(new) => {
                let new = stored(new.as_str());
                let change = TextChange { contact: Some(new), ..TextChange::default() };
                (contact.as_deref() != new, change, Action::KeyContactChanged, name)
            }
        };
        if is_new {
            diesel::update(api_keys::table.find((organisation, key))).set(change).execute(connection)?;
            record_about_key(connection, organisation, action, &subject, &audited, audit)?;
        }
        Ok(Ok(is_new))
    })
}

fn clear_sent_in_clear(
    connection: &mut PgConnection,
    id: Uuid,
    audit: &AuditContext,
) -> QueryResult<Result<bool, ManageKeysError>> {
    let Some((organisation, name, audited)) = named(connection, id, None)? else {
        return Ok(Err(ManageKeysError::NoSuchKey(id.into())));
    };
    connection.transaction(|connection| {
        let marked = key_uses::table.find((organisation, id)).filter(key_uses::sent_in_clear_at.is_not_null());
        let cleared = key_uses::sent_in_clear_at.eq(None::<OffsetDateTime>);
        if diesel::update(marked).set(cleared).execute(connection)? == 0 {
            return Ok(Ok(false));
        }
        record_about_key(connection, organisation, Action::KeyMarkCleared, &name, &audited, audit)?;
        Ok(Ok(true))
    })
}

fn stored(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// The name of a key, the texts about it, and how audit entries name it.
struct Changeable {
    name: String,
    note: Option<String>,
    contact: Option<String>,
    audited: AuditedKey,
}

/// The organisation's key, if it was not revoked, locked until the end of the transaction.
fn locked(connection: &mut PgConnection, organisation: Uuid, key: Uuid) -> QueryResult<Option<Changeable>> {
    let changeable = api_keys::table.find((organisation, key)).filter(api_keys::revoked_at.is_null());
    let columns = (api_keys::name, api_keys::note, api_keys::contact, api_keys::hint);
    let found = changeable.select(columns).for_update().first(connection).optional()?;
    Ok(found.map(|(name, note, contact, hint)| Changeable {
        name,
        note,
        contact,
        audited: AuditedKey { id: key.into(), hint },
    }))
}

/// Returns why there is nothing to change.
fn not_changed(
    connection: &mut PgConnection,
    organisation: Uuid,
    key: Uuid,
) -> QueryResult<Result<bool, ManageKeysError>> {
    let own = api_keys::table.find((organisation, key));
    let exists = diesel::select(diesel::dsl::exists(own)).get_result::<bool>(connection)?;
    let why = if exists { ManageKeysError::KeyIsOver } else { ManageKeysError::NoSuchKey };
    Ok(Err(why(key.into())))
}
