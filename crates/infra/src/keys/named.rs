//! A key as entries of the audit log name it.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::AuditedKey;
use uuid::Uuid;

use crate::keys::directory;
use crate::schema::api_keys;

/// The organisation that the key belongs to, which must be the given one, its name, and how entries about it name it.
/// Not within a transaction, unless the organisation is given.
pub(crate) fn named(
    connection: &mut PgConnection,
    key: Uuid,
    within: Option<Uuid>,
) -> QueryResult<Option<(Uuid, String, AuditedKey)>> {
    let Some(organisation) =
        within.map_or_else(|| directory::organisation(connection, key), |within| Ok(Some(within)))?
    else {
        return Ok(None);
    };
    let own = api_keys::table.find((organisation, key)).select((api_keys::name, api_keys::hint));
    let found = own.first::<(String, String)>(connection).optional()?;
    Ok(found.map(|(name, hint)| (organisation, name, AuditedKey { id: key.into(), hint })))
}
