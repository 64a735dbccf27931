//! Ending a key for good.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Nullable, Timestamptz};
use intake_domain::{Action, AuditContext, RevokeOutcome};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::accounts::permission::assert_manages_keys;
use crate::audit::log::{is_recorded, name_of, record_about_key};
use crate::database::cluster::nodes::connect_to_all;
use crate::database::connecting::lock_wait::{LockPatience, with_lock_patience};
use crate::database::connecting::url::DatabaseUrl;
use crate::database::schema::schema_error::SchemaError;
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

/// First suspends the key, and revokes it when that is committed: so no use is allowed after the moment that is
/// recorded. None: there is no such key.
pub(super) fn revoke(
    connection: &mut PgConnection,
    id: Uuid,
    within: Option<Uuid>,
    audit: &AuditContext,
) -> QueryResult<Option<RevokeOutcome>> {
    let Some((organisation, name, audited)) = named(connection, id, within)? else {
        return Ok(None);
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
        let is_changed = diesel::update(active).set(change).execute(connection)? > 0;
        if is_changed {
            record_about_key(connection, organisation, Action::KeyRevoked, &name, &audited, audit)?;
        }
        let at = key.select(api_keys::revoked_at.assume_not_null()).first(connection)?;
        let is_own = is_changed || is_recorded(connection, organisation, audit)?;
        Ok(Some(if is_own { RevokeOutcome::Revoked { at } } else { RevokeOutcome::AlreadyRevoked { at } }))
    })
}

#[cfg(test)]
mod tests {
    use diesel::connection::SimpleConnection;
    use intake_domain::{Actor, ManageKeysError, Operator, PauseOutcome, ResumeOutcome};
    use intake_test_support::TestDatabase;

    use super::*;
    use crate::keys::pause::{pause, resume};

    fn audit(entry: u128) -> AuditContext {
        let (actor, at) = (Actor::Operator(Operator::default()), OffsetDateTime::UNIX_EPOCH);
        AuditContext { entry_id: Uuid::from_u128(entry).into(), actor, address: None, at, confirmed_in: None }
    }

    /// The pool runs work once more if its answer was lost, with the same entry.
    #[test]
    fn a_change_that_is_run_again_is_still_new_and_one_by_another_call_is_not() {
        let database = TestDatabase::new();
        let mut connection = database.connect();
        let key = "INSERT INTO organisations (id, name) VALUES (gen_random_uuid(), 'Clinic');
            INSERT INTO api_keys (id, organisation_id, name, digest, hint, created_at)
                SELECT gen_random_uuid(), id, 'Front desk', sha256('key'), 'aaaa', now() FROM organisations";
        connection.batch_execute(key).unwrap();
        let id = api_keys::table.select(api_keys::id).first(&mut connection).unwrap();
        for (entry, is_new) in [(1, true), (1, true), (2, false)] {
            let paused = pause(&mut connection, id, None, &audit(entry)).unwrap().unwrap();
            assert_eq!(matches!(paused, PauseOutcome::Paused { .. }), is_new, "{entry}: {paused:?}");
        }
        for (entry, is_new) in [(3, true), (3, true), (4, false)] {
            let resumed = resume(&mut connection, id, None, &audit(entry)).unwrap().unwrap();
            assert_eq!(matches!(resumed, ResumeOutcome::Resumed), is_new, "{entry}: {resumed:?}");
        }
        for (entry, is_new) in [(5, true), (5, true), (6, false)] {
            let revoked = revoke(&mut connection, id, None, &audit(entry)).unwrap().unwrap();
            assert_eq!(matches!(revoked, RevokeOutcome::Revoked { .. }), is_new, "{entry}: {revoked:?}");
        }
        let over = pause(&mut connection, id, None, &audit(7)).unwrap();
        assert!(matches!(over, Err(ManageKeysError::KeyIsOver(_))), "{over:?}");
        assert_eq!(revoke(&mut connection, Uuid::from_u128(8), None, &audit(8)).unwrap(), None);
        assert_eq!(database.count("audit_entries"), 3);
    }
}
