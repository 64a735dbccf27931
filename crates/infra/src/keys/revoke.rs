//! Ending a key for good.

use async_trait::async_trait;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Nullable, Timestamptz};
use intake_domain::{Action, AuditContext, KeyId, KeyRevocationStore, OrganisationId, RevokeOutcome, StoreError};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::accounts::permission::assert_manages_keys;
use crate::audit::log::{name_of, record_about_key};
use crate::database::cluster::nodes::connect_to_all;
use crate::database::connecting::lock_wait::{LockPatience, with_lock_patience};
use crate::database::connecting::share::Share;
use crate::database::connecting::url::DatabaseUrl;
use crate::database::schema::schema_error::SchemaError;
use crate::keys::PostgresKeyStore;
use crate::keys::named::named;
use crate::schema::api_keys;

/// Revokes every key that is not revoked, as the owner of the database, after a restore. Gives how many there were.
/// Each needs an audit context of its own.
pub fn revoke_all_keys(owner: &DatabaseUrl, audit: impl Fn() -> AuditContext) -> Result<usize, SchemaError> {
    let mut connection = connect_to_all(owner, "")?;
    let mut revoked = 0;
    Ok(with_lock_patience(owner, &mut connection, LockPatience::OF_A_COMMAND, |connection| {
        // Expired ones too: the end of a key may have been changed.
        let keys = api_keys::table.filter(api_keys::revoked_at.is_null());
        for (organisation, key) in keys.select((api_keys::organisation_id, api_keys::id)).load(connection)? {
            revoke(connection, key, Some(organisation), &audit())?;
            revoked += 1;
        }
        Ok(revoked)
    })?)
}

#[async_trait]
impl KeyRevocationStore for PostgresKeyStore {
    async fn revoke(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        audit: &AuditContext,
    ) -> Result<RevokeOutcome, StoreError> {
        let (id, within, audit) = (*key.as_uuid(), within.map(|organisation| *organisation.as_uuid()), audit.clone());
        self.0.run(Share::within(within), move |connection| revoke(connection, id, within, &audit)).await
    }
}

/// First suspends the key, and revokes it when that is committed: so no use is allowed after the moment that is
/// recorded.
fn revoke(
    connection: &mut PgConnection,
    id: Uuid,
    within: Option<Uuid>,
    audit: &AuditContext,
) -> QueryResult<RevokeOutcome> {
    let Some((organisation, name, audited)) = named(connection, id, within)? else {
        return Ok(RevokeOutcome::NotFound);
    };
    let key = api_keys::table.find((organisation, id));
    let active = key.filter(api_keys::revoked_at.is_null());
    let suspended_at = active.select(api_keys::suspended_at).first::<Option<OffsetDateTime>>(connection).optional()?;
    let now = || diesel::dsl::now.into_sql::<Nullable<Timestamptz>>();
    let accepted = active.filter(api_keys::suspended_at.is_null());
    connection.transaction(|connection| {
        assert_manages_keys(connection, organisation, audit)?;
        diesel::update(accepted).set(api_keys::suspended_at.eq(now())).execute(connection)
    })?;
    connection.transaction(|connection| {
        // The beginning of this transaction, which is after the end of the key. Citus takes no clock_timestamp() here.
        let change = (
            api_keys::revoked_at.eq(now()),
            api_keys::revoked_by.eq(name_of(&audit.actor)),
            api_keys::suspended_at.eq(suspended_at.flatten()),
        );
        if diesel::update(active).set(change).execute(connection)? > 0 {
            record_about_key(connection, organisation, Action::KeyRevoked, &name, &audited, audit)?;
        }
        let revoked_at = key.select(api_keys::revoked_at.assume_not_null());
        Ok(RevokeOutcome::Revoked { at: revoked_at.first(connection)? })
    })
}
