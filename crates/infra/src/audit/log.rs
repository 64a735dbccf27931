//! The audit log: written within the transaction of each change, read page by page.

use async_trait::async_trait;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use intake_domain::{
    Action, Actor, AuditEntry, AuditLog, Deed, EntryFilter, EntryPosition, OrganisationId, RecordedAction, StoreError,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database::pool::Database;
use crate::schema::audit_entries;

/// The port [`AuditLog`] over PostgreSQL.
pub struct PostgresAuditLog(Database);

impl PostgresAuditLog {
    /// A log over this pool.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self(database)
    }
}

#[async_trait]
impl AuditLog for PostgresAuditLog {
    async fn entries(
        &self,
        organisation: OrganisationId,
        filter: &EntryFilter,
        position: EntryPosition,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let (id, filter) = (*organisation.as_uuid(), filter.clone());
        let found = self.0.run(move |connection| entries(connection, id, &filter, position, limit));
        Ok(found.await?.into_iter().map(|row| row.into_entry(organisation)).collect())
    }
}

fn entries(
    connection: &mut PgConnection,
    organisation: Uuid,
    filter: &EntryFilter,
    position: EntryPosition,
    limit: u32,
) -> QueryResult<Vec<EntryRow>> {
    let beside = match position {
        EntryPosition::Newest => None,
        EntryPosition::Before(entry) | EntryPosition::After(entry) => {
            // Entries are sorted by the database's clock; the moment in their ids is the service's.
            let moment = audit_entries::table.find((organisation, entry.as_uuid())).select(audit_entries::at);
            match moment.first::<OffsetDateTime>(connection).optional()? {
                Some(at) => Some((at, *entry.as_uuid())),
                None => return Ok(Vec::new()),
            }
        }
    };
    let found = fitting(organisation, filter).limit(limit.into()).select(EntryRow::as_select());
    let Some((at, id)) = beside else {
        return found.order((audit_entries::at.desc(), audit_entries::id.desc())).load(connection);
    };
    let is_same = audit_entries::at.eq(at);
    if matches!(position, EntryPosition::After(_)) {
        let is_newer = audit_entries::at.gt(at).or(is_same.and(audit_entries::id.gt(id)));
        let oldest_first = found.filter(is_newer).order((audit_entries::at, audit_entries::id));
        let mut rows: Vec<EntryRow> = oldest_first.load(connection)?;
        rows.reverse();
        return Ok(rows);
    }
    let is_older = audit_entries::at.lt(at).or(is_same.and(audit_entries::id.lt(id)));
    found.filter(is_older).order((audit_entries::at.desc(), audit_entries::id.desc())).load(connection)
}

/// The organisation's entries that fit the filter.
fn fitting(organisation: Uuid, filter: &EntryFilter) -> audit_entries::BoxedQuery<'static, Pg> {
    let mut fitting = audit_entries::table.filter(audit_entries::organisation_id.eq(organisation)).into_boxed();
    if let Some(kind) = filter.kind {
        let names: Vec<_> = kind.actions().map(Action::as_str).collect();
        fitting = fitting.filter(audit_entries::action.eq_any(names));
    }
    if let Some(person) = &filter.person {
        let text = person.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        let pattern = format!("%{text}%");
        let did = audit_entries::actor.assume_not_null().ilike(pattern.clone());
        let is_named = audit_entries::actor.is_not_null().and(did).or(audit_entries::subject.ilike(pattern));
        fitting = fitting.filter(is_named);
    }
    if let Some(from) = filter.from {
        fitting = fitting.filter(audit_entries::at.ge(from));
    }
    if let Some(until) = filter.until {
        fitting = fitting.filter(audit_entries::at.lt(until));
    }
    fitting
}

/// Records a deed, within the transaction of the change. Recording it twice adds one entry.
pub(crate) fn record(
    connection: &mut PgConnection,
    organisation: Uuid,
    action: Action,
    subject: &str,
    deed: &Deed,
) -> QueryResult<()> {
    let row = (
        audit_entries::organisation_id.eq(organisation),
        audit_entries::id.eq(deed.entry_id.as_uuid()),
        audit_entries::action.eq(action.as_str()),
        audit_entries::actor.eq(name_of(&deed.actor)),
        audit_entries::subject.eq(subject),
        audit_entries::address.eq(deed.address.map(|address| address.to_string())),
    );
    diesel::insert_into(audit_entries::table).values(row).on_conflict_do_nothing().execute(connection).map(drop)
}

/// A member's name; operators and strangers have none.
pub(crate) fn name_of(actor: &Actor) -> Option<&str> {
    match actor {
        Actor::Member(_, name) => Some(name),
        Actor::Operator | Actor::Stranger => None,
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = audit_entries)]
struct EntryRow {
    id: Uuid,
    at: OffsetDateTime,
    action: String,
    actor: Option<String>,
    subject: String,
    address: Option<String>,
}

impl EntryRow {
    fn into_entry(self, organisation_id: OrganisationId) -> AuditEntry {
        AuditEntry {
            id: self.id.into(),
            at: self.at,
            action: RecordedAction::named(self.action),
            actor: self.actor,
            subject: self.subject,
            address: self.address,
            organisation_id,
        }
    }
}
