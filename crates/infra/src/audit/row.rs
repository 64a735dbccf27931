//! An entry of the audit log as PostgreSQL holds it.

use diesel::prelude::*;
use intake_domain::{
    AuditDetails, AuditEntry, AuditedKey, MemberId, OrganisationId, RecordedAction, RecordedActor, Role,
};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::schema::audit_entries;

/// An entry as it is stored.
#[derive(Queryable, Selectable)]
#[diesel(table_name = audit_entries)]
pub(super) struct EntryRow {
    id: Uuid,
    at: OffsetDateTime,
    recorded_in: i64,
    action: String,
    actor: Option<String>,
    actor_id: Option<Uuid>,
    actor_email: Option<String>,
    operator: Option<String>,
    subject: String,
    address: Option<String>,
    reason: Option<String>,
    key_id: Option<Uuid>,
    key_hint: Option<String>,
    replaced_key_id: Option<Uuid>,
    key_expires_at: Option<OffsetDateTime>,
    idempotency_digest: Option<Vec<u8>>,
    role: Option<String>,
}

impl EntryRow {
    pub(super) fn into_entry(self, organisation_id: OrganisationId) -> AuditEntry {
        let Self { id, at, recorded_in: number, action, actor, actor_id, actor_email, operator, subject, .. } = self;
        let Self { address, reason, key_id, key_hint, replaced_key_id, key_expires_at, .. } = self;
        let Self { idempotency_digest, role, .. } = self;
        let action = RecordedAction::named(action);
        let actor = match (operator, actor) {
            (Some(name), _) => RecordedActor::Operator(Some(name)),
            (None, Some(name)) => RecordedActor::Member { id: actor_id.map(MemberId::from), name, email: actor_email },
            (None, None) => action.unnamed_actor(),
        };
        let key = key_id.zip(key_hint).map(|(id, hint)| AuditedKey { id: id.into(), hint });
        let details = AuditDetails {
            replaced_key: replaced_key_id.map(Into::into),
            key_expires_at,
            idempotency_digest: idempotency_digest.and_then(|digest| digest.try_into().ok()),
            role: role.and_then(|role| role.parse().ok()).map(Role::as_str),
        };
        AuditEntry { id: id.into(), at, number, action, actor, subject, address, reason, key, details, organisation_id }
    }
}
