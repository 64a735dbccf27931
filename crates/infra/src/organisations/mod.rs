//! What operators do to a whole organisation, over PostgreSQL.
//!
//! The rows of an organisation's keys repeat whether it is suspended, so that the insert of a patient reads only one
//! row. Both change in one transaction, which first locks the organisation's state: a key that is created at the same
//! moment waits, and is refused. The state is a view of the organisation, and on Citus a copy beside its keys.

mod erase;
mod row;
mod zone;

use diesel::dsl::{exists, not};
use diesel::prelude::*;
use diesel::sql_types::{Nullable, Timestamptz};
use diesel::upsert::excluded;
use intake_domain::{Action, AuditContext, Name, Organisation, OrganisationId, OrganisationRecord, StoreError, Zone};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::audit::log::{name_of, record};
use crate::database::cluster::nodes::NodeAway;
use crate::database::cluster::spread::is_spread;
use crate::database::connecting::clock;
use crate::database::connecting::pool::Database;
use crate::database::connecting::share::Share;
use crate::schema::{api_keys, invitations, key_uses, members, memberships, organisation_states, organisations};

pub use erase::{EraseOrganisation, erase_organisation};
use row::OrganisationState;
pub(crate) use row::{OrganisationRow, age_of};
pub(crate) use zone::{put_zone, zone_of};

/// Organisations over PostgreSQL.
pub struct PostgresOrganisations(Database);

/// Outcome of an attempt to change an organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrganisationOutcome {
    /// It is so from now on.
    Changed(OrganisationRecord),
    /// It was so already; nothing was changed or recorded.
    Unchanged(OrganisationRecord),
    /// It is closed, which stays so.
    Closed(OrganisationRecord),
    /// There is no such organisation.
    NotFound,
}

impl PostgresOrganisations {
    /// Organisations over this pool.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(database)
    }

    /// Makes an organisation, as nobody's change.
    pub async fn add(&self, organisation: &Organisation) -> Result<(), StoreError> {
        let (id, name) = (*organisation.id.as_uuid(), organisation.name.to_string());
        self.0.transaction(Share::Common, move |connection| insert(connection, id, &name)).await
    }

    /// All organisations, the oldest first.
    pub async fn all(&self) -> Result<Vec<OrganisationRecord>, StoreError> {
        let found = self.0.run(Share::Common, |connection| {
            let oldest_first = organisations::table.order((organisations::created_at, organisations::id));
            oldest_first.select(OrganisationRow::as_select()).load(connection)
        });
        Ok(found.await?.into_iter().map(OrganisationRecord::from).collect())
    }

    /// Makes an organisation, as an operator, with the first of these ids that belongs to a node that is there.
    pub async fn create(
        &self,
        name: &Name,
        ids: impl Iterator<Item = OrganisationId> + Send,
        audit: &AuditContext,
    ) -> Result<OrganisationId, StoreError> {
        let mut last = StoreError::Unavailable("there is no id for the organisation".into());
        for organisation in ids {
            let (id, name, audit) = (*organisation.as_uuid(), name.to_string(), audit.clone());
            let created = self.0.transaction(Share::Common, move |connection| {
                insert(connection, id, &name)?;
                record(connection, id, Action::OrganisationCreated, &name, &audit)
            });
            match created.await {
                Ok(()) => return Ok(organisation),
                Err(StoreError::Unavailable(cause)) if cause.is::<NodeAway>() => last = StoreError::Unavailable(cause),
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// Gives the organisation another name. The record keeps both.
    pub async fn rename(
        &self,
        id: OrganisationId,
        name: &Name,
        audit: &AuditContext,
    ) -> Result<OrganisationOutcome, StoreError> {
        let name = name.clone();
        self.change(id, audit, move |connection, found, audit| {
            let (id, old) = (*found.id.as_uuid(), found.name.clone());
            if old == name.as_str() {
                return Ok(false);
            }
            let renamed = diesel::update(organisations::table.find(id)).set(organisations::name.eq(name.as_str()));
            renamed.execute(connection)?;
            record(connection, id, Action::OrganisationRenamed, &format!("{old} → {name}"), audit)?;
            Ok(true)
        })
        .await
    }

    /// Changes the zone in which members of the organisation see days and times.
    pub async fn change_zone(
        &self,
        id: OrganisationId,
        zone: Zone,
        audit: &AuditContext,
    ) -> Result<OrganisationOutcome, StoreError> {
        self.change(id, audit, move |connection, found, audit| put_zone(connection, found, zone, audit)).await
    }

    /// Refuses all keys of the organisation until it is resumed.
    pub async fn suspend(&self, id: OrganisationId, audit: &AuditContext) -> Result<OrganisationOutcome, StoreError> {
        self.change(id, audit, |connection, found, audit| {
            if found.suspended_at.is_some() || found.closed_at.is_some() {
                return Ok(false);
            }
            let (id, now) = (*found.id.as_uuid(), Some(clock::read(connection)?));
            diesel::update(organisations::table.find(id))
                .set(organisations::suspended_at.eq(now))
                .execute(connection)?;
            copy_state(connection, id)?;
            let keys = api_keys::table.filter(api_keys::organisation_id.eq(id));
            let accepted = keys.filter(api_keys::revoked_at.is_null().and(api_keys::suspended_at.is_null()));
            diesel::update(accepted).set(api_keys::suspended_at.eq(now)).execute(connection)?;
            record(connection, id, Action::OrganisationSuspended, &found.name, audit)?;
            Ok(true)
        })
        .await
    }

    /// Takes the keys of the organisation again, except those that were revoked or have expired.
    pub async fn resume(&self, id: OrganisationId, audit: &AuditContext) -> Result<OrganisationOutcome, StoreError> {
        self.change(id, audit, |connection, found, audit| {
            if found.suspended_at.is_none() || found.closed_at.is_some() {
                return Ok(false);
            }
            let id = *found.id.as_uuid();
            let never = None::<OffsetDateTime>;
            diesel::update(organisations::table.find(id))
                .set(organisations::suspended_at.eq(never))
                .execute(connection)?;
            copy_state(connection, id)?;
            let keys = api_keys::table.filter(api_keys::organisation_id.eq(id));
            diesel::update(keys).set(api_keys::suspended_at.eq(never)).execute(connection)?;
            note_resumed(connection, id, None)?;
            record(connection, id, Action::OrganisationResumed, &found.name, audit)?;
            Ok(true)
        })
        .await
    }

    /// Revokes all keys of the organisation and removes its members and invitations, for good. Its patients stay.
    pub async fn close(&self, id: OrganisationId, audit: &AuditContext) -> Result<OrganisationOutcome, StoreError> {
        self.change(id, audit, |connection, found, audit| {
            if found.closed_at.is_some() {
                return Ok(false);
            }
            let now = Some(clock::read(connection)?);
            let id = *found.id.as_uuid();
            diesel::update(organisations::table.find(id)).set(organisations::closed_at.eq(now)).execute(connection)?;
            copy_state(connection, id)?;
            let keys = api_keys::table.filter(api_keys::organisation_id.eq(id));
            diesel::update(keys.filter(api_keys::revoked_at.is_null()))
                .set((api_keys::revoked_at.eq(now), api_keys::revoked_by.eq(name_of(&audit.actor))))
                .execute(connection)?;
            // First, because a guest who joins at this moment holds the invitation.
            diesel::delete(invitations::table.filter(invitations::organisation_id.eq(id))).execute(connection)?;
            let all = members::table.inner_join(memberships::table).filter(memberships::organisation_id.eq(id));
            let all = all.order(members::id).select(members::id).for_update().load::<Uuid>(connection)?;
            end_memberships(connection, id, &all)?;
            record(connection, id, Action::OrganisationClosed, &found.name, audit)?;
            Ok(true)
        })
        .await
    }

    /// Runs a change, which says whether there was one to make, with the organisation's row locked.
    async fn change(
        &self,
        id: OrganisationId,
        audit: &AuditContext,
        change: impl Fn(&mut PgConnection, &OrganisationRecord, &AuditContext) -> QueryResult<bool> + Send + Sync + 'static,
    ) -> Result<OrganisationOutcome, StoreError> {
        let (id, audit) = (*id.as_uuid(), audit.clone());
        let changed = self.0.transaction(Share::Common, move |connection| {
            let Some(found) = locked_exclusively(connection, id)? else {
                return Ok(OrganisationOutcome::NotFound);
            };
            if change(connection, &found, &audit)? {
                let row = organisations::table.find(id).select(OrganisationRow::as_select());
                return Ok(OrganisationOutcome::Changed(row.first(connection)?.into()));
            }
            let is_closed = found.closed_at.is_some();
            Ok(if is_closed { OrganisationOutcome::Closed(found) } else { OrganisationOutcome::Unchanged(found) })
        });
        changed.await
    }
}

fn insert(connection: &mut PgConnection, id: Uuid, name: &str) -> QueryResult<()> {
    let row = (organisations::id.eq(id), organisations::name.eq(name));
    diesel::insert_into(organisations::table).values(row).on_conflict_do_nothing().execute(connection)?;
    copy_state(connection, id)
}

/// Copies the state of an organisation to its keys, where that is not a view. Makes of keys wait from here on.
pub(crate) fn copy_state(connection: &mut PgConnection, organisation: Uuid) -> QueryResult<()> {
    if !is_spread(connection)? {
        return Ok(());
    }
    let state = (organisations::suspended_at, organisations::closed_at, organisations::key_days_max);
    let state: OrganisationState = organisations::table.find(organisation).select(state).first(connection)?;
    diesel::insert_into(organisation_states::table)
        .values((organisation_states::organisation_id.eq(organisation), &state))
        .on_conflict(organisation_states::organisation_id)
        .do_update()
        .set(&state)
        .execute(connection)
        .map(drop)
}

/// The state of an organisation. Nobody suspends or closes it before the end of the transaction.
pub(crate) fn locked_state(
    connection: &mut PgConnection,
    organisation: Uuid,
) -> QueryResult<Option<OrganisationState>> {
    let row = organisation_states::table.find(organisation).select(OrganisationState::as_select());
    row.for_share().first(connection).optional()
}

/// An organisation, for one transaction at a time.
pub(crate) fn locked_exclusively(
    connection: &mut PgConnection,
    organisation: Uuid,
) -> QueryResult<Option<OrganisationRecord>> {
    let row = organisations::table.find(organisation).select(OrganisationRow::as_select());
    Ok(row.for_no_key_update().first(connection).optional()?.map(Into::into))
}

/// Ends memberships of locked members, and deletes the accounts that belong to no other organisation. Foreign keys
/// remove the sessions in the organisation, and the reset links and invitations that the members made there; with an
/// account, all that it has.
pub(crate) fn end_memberships(connection: &mut PgConnection, organisation: Uuid, ended: &[Uuid]) -> QueryResult<()> {
    let own = memberships::table.filter(memberships::organisation_id.eq(organisation));
    diesel::delete(own.filter(memberships::member_id.eq_any(ended))).execute(connection)?;
    let left = memberships::table.filter(memberships::member_id.eq(members::id));
    let without = members::table.filter(members::id.eq_any(ended)).filter(not(exists(left)));
    diesel::delete(without).execute(connection).map(drop)
}

/// Notes that these keys, or all of the organisation, may be used again: until then it was not silent but refused.
pub(crate) fn note_resumed(
    connection: &mut PgConnection,
    organisation: Uuid,
    keys: Option<&[Uuid]>,
) -> QueryResult<()> {
    let all = api_keys::table.filter(api_keys::organisation_id.eq(organisation).and(api_keys::revoked_at.is_null()));
    let mut ids = all.select(api_keys::id).order(api_keys::id).load::<Uuid>(connection)?;
    ids.retain(|id| keys.is_none_or(|only| only.contains(id)));
    let now = || diesel::dsl::now.into_sql::<Nullable<Timestamptz>>();
    let row = |id: Uuid| {
        (key_uses::organisation_id.eq(organisation), key_uses::key_id.eq(id), key_uses::resumed_at.eq(now()))
    };
    let rows: Vec<_> = ids.into_iter().map(row).collect();
    diesel::insert_into(key_uses::table)
        .values(rows)
        .on_conflict((key_uses::organisation_id, key_uses::key_id))
        .do_update()
        .set(key_uses::resumed_at.eq(excluded(key_uses::resumed_at)))
        .execute(connection)
        .map(drop)
}
