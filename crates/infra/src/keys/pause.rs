//! Pausing a key for a while, and resuming it.

use diesel::dsl::{AsExprOf, Eq, now};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Nullable, Timestamptz};
use intake_domain::{Action, Actor, AuditContext, ManageKeysError, PauseOutcome, ResumeOutcome};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::accounts::permission::assert_manages_keys;
use crate::audit::log::{is_recorded, name_of, record_about_key};
use crate::keys::named::named;
use crate::keys::status::is_open;
use crate::organisations::note_resumed;
use crate::schema::api_keys;

type PauseOf<'a, At> =
    (Eq<api_keys::paused_at, At>, Eq<api_keys::paused_by, Option<&'a str>>, Eq<api_keys::stopped_in, Option<Uuid>>);

/// Change of keys that are paused, each by itself or all by this stop.
pub(super) fn paused(by: &Actor, stop: Option<Uuid>) -> PauseOf<'_, AsExprOf<now, Nullable<Timestamptz>>> {
    (
        api_keys::paused_at.eq(now.into_sql::<Nullable<Timestamptz>>()),
        api_keys::paused_by.eq(name_of(by)),
        api_keys::stopped_in.eq(stop),
    )
}

/// Change of keys that are resumed.
pub(super) fn unpaused() -> PauseOf<'static, Option<OffsetDateTime>> {
    (
        api_keys::paused_at.eq(None::<OffsetDateTime>),
        api_keys::paused_by.eq(None::<&str>),
        api_keys::stopped_in.eq(None::<Uuid>),
    )
}

/// Refuses all requests with the key from the end of this transaction on.
pub(super) fn pause(
    connection: &mut PgConnection,
    id: Uuid,
    within: Option<Uuid>,
    audit: &AuditContext,
) -> QueryResult<Result<PauseOutcome, ManageKeysError>> {
    let Some((organisation, name, audited)) = named(connection, id, within)? else {
        return Ok(Err(ManageKeysError::NoSuchKey(id.into())));
    };
    connection.transaction(|connection| {
        assert_manages_keys(connection, organisation, audit)?;
        let paused_at = match paused_since(connection, organisation, id)? {
            None => return Ok(Err(ManageKeysError::KeyIsOver(id.into()))),
            Some(Some(at)) if is_recorded(connection, organisation, audit)? => at,
            Some(Some(at)) => return Ok(Ok(PauseOutcome::AlreadyPaused { at })),
            Some(None) => {
                let paused = diesel::update(api_keys::table.find((organisation, id))).set(paused(&audit.actor, None));
                record_about_key(connection, organisation, Action::KeyPaused, &name, &audited, audit)?;
                paused.returning(api_keys::paused_at.assume_not_null()).get_result(connection)?
            }
        };
        Ok(Ok(PauseOutcome::Paused { at: paused_at }))
    })
}

/// Accepts requests with the key again.
pub(super) fn resume(
    connection: &mut PgConnection,
    id: Uuid,
    within: Option<Uuid>,
    audit: &AuditContext,
) -> QueryResult<Result<ResumeOutcome, ManageKeysError>> {
    let Some((organisation, name, audited)) = named(connection, id, within)? else {
        return Ok(Err(ManageKeysError::NoSuchKey(id.into())));
    };
    connection.transaction(|connection| {
        assert_manages_keys(connection, organisation, audit)?;
        match paused_since(connection, organisation, id)? {
            None => return Ok(Err(ManageKeysError::KeyIsOver(id.into()))),
            Some(None) if is_recorded(connection, organisation, audit)? => {}
            Some(None) => return Ok(Ok(ResumeOutcome::NotPaused)),
            Some(Some(_)) => {
                diesel::update(api_keys::table.find((organisation, id))).set(unpaused()).execute(connection)?;
                note_resumed(connection, organisation, Some(&[id]))?;
                record_about_key(connection, organisation, Action::KeyResumed, &name, &audited, audit)?;
            }
        }
        Ok(Ok(ResumeOutcome::Resumed))
    })
}

/// Since when the key is paused, which nobody changes before the end of the transaction. None: it has expired or was
/// revoked, by the database's clock.
fn paused_since(
    connection: &mut PgConnection,
    organisation: Uuid,
    key: Uuid,
) -> QueryResult<Option<Option<OffsetDateTime>>> {
    let open = api_keys::table.find((organisation, key)).filter(is_open());
    open.select(api_keys::paused_at).for_no_key_update().first(connection).optional()
}
