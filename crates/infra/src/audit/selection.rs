//! Which entries of the audit log are read, whether a page of them, all at once, or as they come.

use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use intake_domain::{Action, KeyId, OrganisationId};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::schema::{audit_entries, members, memberships};

/// Which entries are read; by itself, all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditSelection {
    /// Only those of this organisation.
    pub organisation: Option<OrganisationId>,
    /// Only those recorded at this moment or later.
    pub since: Option<OffsetDateTime>,
    /// Only those recorded before this moment.
    pub until: Option<OffsetDateTime>,
    /// Only those about this API key.
    pub key: Option<KeyId>,
    /// Only those that a person did or that were done to one, as in [`intake_domain::EntryFilter`].
    pub member: Option<String>,
    /// Only these actions; none: all.
    pub actions: Vec<Action>,
}

impl AuditSelection {
    /// The selected entries, in no order.
    pub(super) fn entries(&self, connection: &mut PgConnection) -> QueryResult<audit_entries::BoxedQuery<'static, Pg>> {
        let mut found = audit_entries::table.into_boxed();
        if let Some(organisation) = self.organisation {
            found = found.filter(audit_entries::organisation_id.eq(*organisation.as_uuid()));
        }
        if let Some(since) = self.since {
            found = found.filter(audit_entries::at.ge(since));
        }
        if let Some(until) = self.until {
            found = found.filter(audit_entries::at.lt(until));
        }
        if let Some(key) = self.key {
            found = found.filter(audit_entries::key_id.eq(*key.as_uuid()));
        }
        if !self.actions.is_empty() {
            let names: Vec<_> = self.actions.iter().map(|action| action.as_str()).collect();
            found = found.filter(audit_entries::action.eq_any(names));
        }
        match &self.member {
            Some(member) => of_person(connection, self.organisation.map(|id| *id.as_uuid()), member, found),
            None => Ok(found),
        }
    }
}

/// Those of these entries that a person did, or that were done to one.
pub(super) fn of_person(
    connection: &mut PgConnection,
    organisation: Option<Uuid>,
    person: &str,
    entries: audit_entries::BoxedQuery<'static, Pg>,
) -> QueryResult<audit_entries::BoxedQuery<'static, Pg>> {
    let pattern = format!("%{}%", literal(person));
    // Also matches current names and emails. A separate query, because on Citus members are on the coordinator.
    let is_called = members::name.ilike(pattern.clone()).or(members::email.ilike(pattern.clone()));
    let mut people = members::table.inner_join(memberships::table).filter(is_called).into_boxed();
    if let Some(organisation) = organisation {
        people = people.filter(memberships::organisation_id.eq(organisation));
    }
    let people: Vec<Option<Uuid>> = people.select(members::id.nullable()).load(connection)?;
    let is_named = audit_entries::actor
        .ilike(pattern.clone())
        .or(audit_entries::actor_email.ilike(pattern.clone()))
        .or(audit_entries::operator.ilike(pattern.clone()))
        .or(audit_entries::actor_id.eq_any(people))
        .or(audit_entries::subject.ilike(pattern));
    Ok(entries.filter(is_named))
}

/// A text for a pattern, in which it stands for itself.
pub(crate) fn literal(text: &str) -> String {
    text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")
}
