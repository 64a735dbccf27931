//! The networks from which a key is accepted, over Diesel.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{Action, AllowedNetworks, AuditContext, ManageKeysError};
use uuid::Uuid;

use crate::accounts::permission::assert_manages_keys;
use crate::audit::log::record_about_key;
use crate::keys::named::named;
use crate::keys::network_sql::{Stored, read, stored};
use crate::schema::api_keys;

pub(super) fn set_allowed_networks(
    connection: &mut PgConnection,
    id: Uuid,
    within: Option<Uuid>,
    networks: &AllowedNetworks,
    audit: &AuditContext,
) -> QueryResult<Result<bool, ManageKeysError>> {
    let Some((organisation, name, audited)) = named(connection, id, within)? else {
        return Ok(Err(ManageKeysError::NoSuchKey(id.into())));
    };
    connection.transaction(|connection| {
        assert_manages_keys(connection, organisation, audit)?;
        // The database lets nobody change a revoked key, so it is not found for a change.
        let changeable = api_keys::table.find((organisation, id)).filter(api_keys::revoked_at.is_null());
        let old = changeable.select(api_keys::allowed_networks).for_update().first::<Stored>(connection).optional()?;
        let Some(old) = old.map(read) else { return Ok(Err(ManageKeysError::KeyIsOver(id.into()))) };
        if old == *networks {
            return Ok(Ok(false));
        }
        let change = api_keys::allowed_networks.eq(stored(networks));
        diesel::update(api_keys::table.find((organisation, id))).set(change).execute(connection)?;
        let subject = format!("{name}: {old} → {networks}");
        record_about_key(connection, organisation, Action::KeyNetworksChanged, &subject, &audited, audit)?;
        Ok(Ok(true))
    })
}
