//! The keys that a member made, which only the audit log knows: a key keeps the name of its maker, and names change.

use diesel::prelude::*;
use intake_domain::Action;
use uuid::Uuid;

use crate::schema::audit_entries;

/// The ids of an organisation's keys that this member made, anew or in the place of others.
pub(super) fn made_by(connection: &mut PgConnection, organisation: Uuid, member: Uuid) -> QueryResult<Vec<Uuid>> {
    audit_entries::table
        .filter(audit_entries::organisation_id.eq(organisation).and(audit_entries::key_id.is_not_null()))
        .filter(audit_entries::action.eq_any([Action::KeyCreated, Action::KeyReplaced].map(Action::as_str)))
        .filter(audit_entries::actor_id.eq(member))
        .select(audit_entries::key_id.assume_not_null())
        .load(connection)
}
