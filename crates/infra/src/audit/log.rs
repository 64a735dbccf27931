//! The audit log: written within the transaction of each change, read page by page.

use async_trait::async_trait;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{
    Action, Actor, AuditEntry, AuditEntryId, AuditLog, Deed, OrganisationId, RecordedAction, StoreError,
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
        before: Option<AuditEntryId>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let id = *organisation.as_uuid();
        let found = self.0.run(move |connection| {
            let of_organisation = audit_entries::table.filter(audit_entries::organisation_id.eq(id));
            // Entries are sorted by the database's clock; the moment in their ids is the service's.
            let cursor = match before {
                Some(before) => of_organisation
                    .filter(audit_entries::id.eq(before.as_uuid()))
                    .select((audit_entries::at, audit_entries::id))
                    .first::<(OffsetDateTime, Uuid)>(connection)
                    .optional()?,
                None => None,
            };
            let newest_first = of_organisation
                .order((audit_entries::at.desc(), audit_entries::id.desc()))
                .limit(limit.into())
                .select(EntryRow::as_select());
            let Some((at, id)) = cursor else {
                // There is nothing before a cursor that does not exist.
                return if before.is_some() { Ok(Vec::new()) } else { newest_first.load(connection) };
            };
            let is_older = audit_entries::at.lt(at).or(audit_entries::at.eq(at).and(audit_entries::id.lt(id)));
            newest_first.filter(is_older).load(connection)
        });
        Ok(found.await?.into_iter().map(|row| row.into_entry(organisation)).collect())
    }
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
