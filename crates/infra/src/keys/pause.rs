//! Pausing a key for a while, and resuming it.

use async_trait::async_trait;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::sql_types::{Bool, Nullable, Timestamptz};
use intake_domain::{
    Action, AuditContext, KeyId, KeyPauseStore, OrganisationId, PauseOutcome, ResumeOutcome, StoreError,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::accounts::permission::assert_manages_keys;
use crate::audit::log::{name_of, record_about_key};
use crate::database::connecting::share::Share;
use crate::keys::PostgresKeyStore;
use crate::keys::named::named;
use crate::keys::status::refusal;
use crate::organisations::note_resumed;
use crate::schema::api_keys;

#[async_trait]
impl KeyPauseStore for PostgresKeyStore {
    async fn pause(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        audit: &AuditContext,
    ) -> Result<PauseOutcome, StoreError> {
        let (id, within, audit) = (*key.as_uuid(), within.map(|organisation| *organisation.as_uuid()), audit.clone());
        self.0.run(Share::within(within), move |connection| pause(connection, id, within, &audit)).await
    }

    async fn resume(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        audit: &AuditContext,
    ) -> Result<ResumeOutcome, StoreError> {
        let (id, within, audit) = (*key.as_uuid(), within.map(|organisation| *organisation.as_uuid()), audit.clone());
        self.0.run(Share::within(within), move |connection| resume(connection, id, within, &audit)).await
    }
}

/// Refuses all requests with the key from the end of this transaction on.
fn pause(
    connection: &mut PgConnection,
    id: Uuid,
    within: Option<Uuid>,
    audit: &AuditContext,
) -> QueryResult<PauseOutcome> {
    let Some((organisation, name, audited)) = named(connection, id, within)? else {
        return Ok(PauseOutcome::NotFound);
    };
    connection.transaction(|connection| {
        assert_manages_keys(connection, organisation, audit)?;
        let now = || diesel::dsl::now.into_sql::<Nullable<Timestamptz>>();
        let key = api_keys::table.find((organisation, id));
        let change = (api_keys::paused_at.eq(now()), api_keys::paused_by.eq(name_of(&audit.actor)));
        let active = key.filter(api_keys::paused_at.is_null()).filter(is_open());
        if diesel::update(active).set(change).execute(connection)? > 0 {
            record_about_key(connection, organisation, Action::KeyPaused, &name, &audited, audit)?;
        }
        let paused_at = key.filter(is_open()).select(api_keys::paused_at);
        let paused_at = paused_at.first::<Option<OffsetDateTime>>(connection).optional()?;
        Ok(paused_at.flatten().map_or(PauseOutcome::Over, |at| PauseOutcome::Paused { at }))
    })
}

/// Accepts requests with the key again.
fn resume(
    connection: &mut PgConnection,
    id: Uuid,
    within: Option<Uuid>,
    audit: &AuditContext,
) -> QueryResult<ResumeOutcome> {
    let Some((organisation, name, audited)) = named(connection, id, within)? else {
        return Ok(ResumeOutcome::NotFound);
    };
    connection.transaction(|connection| {
        assert_manages_keys(connection, organisation, audit)?;
        let key = api_keys::table.find((organisation, id));
        let change = (api_keys::paused_at.eq(None::<OffsetDateTime>), api_keys::paused_by.eq(None::<&str>));
        if diesel::update(key.filter(api_keys::paused_at.is_not_null()).filter(is_open()))
            .set(change)
            .execute(connection)?
            > 0
        {
            note_resumed(connection, organisation, Some(id))?;
            record_about_key(connection, organisation, Action::KeyResumed, &name, &audited, audit)?;
            return Ok(ResumeOutcome::Resumed);
        }
        let is_open = diesel::select(diesel::dsl::exists(key.filter(is_open()))).get_result::<bool>(connection)?;
        Ok(if is_open { ResumeOutcome::NotPaused } else { ResumeOutcome::Over })
    })
}

/// Condition that the key has neither expired nor been revoked, by the database's clock.
fn is_open() -> Box<dyn BoxableExpression<api_keys::table, Pg, SqlType = Bool>> {
    let refusal = || refusal(diesel::dsl::now.into_sql::<Timestamptz>());
    Box::new(refusal().is_distinct_from("revoked").and(refusal().is_distinct_from("expired")))
}
