//! An entry of the audit log as `intake audit` prints it.

use intake_domain::{AuditEntry, RecordedAction, RecordedActor, timestamp};
use serde_json::{Value, json};

/// The entry for a program.
pub(super) fn value_of(entry: &AuditEntry) -> Value {
    let (kind, name, email) = match &entry.actor {
        RecordedActor::Operator(name) => ("operator", name.as_deref(), None),
        RecordedActor::Member { name, email, .. } => ("member", Some(name.as_str()), email.as_deref()),
        RecordedActor::Stranger => ("stranger", None, None),
    };
    json!({
        "id": entry.id.as_uuid().to_string(),
        "at": timestamp(entry.at),
        "number": entry.number,
        "organisationId": entry.organisation_id.to_string(),
        "action": action(entry),
        "actor": { "kind": kind, "name": name, "email": email },
        "subject": entry.subject,
        "keyId": entry.key.as_ref().map(|key| key.id.to_string()),
        "keyHint": entry.key.as_ref().map(|key| key.hint.as_str()),
        "replacedKeyId": entry.details.replaced_key.map(|key| key.to_string()),
        "keyExpiresAt": entry.details.key_expires_at.map(timestamp),
        "idempotencyDigest": entry.details.idempotency_digest.map(|digest| digest.to_string()),
        "role": entry.details.role,
        "reason": entry.reason,
        "address": entry.address,
    })
}

/// The entry for people.
pub(super) fn line_of(entry: &AuditEntry) -> String {
    let actor = match &entry.actor {
        RecordedActor::Operator(Some(name)) => format!("operator {name}"),
        RecordedActor::Operator(None) => "an operator".to_owned(),
        RecordedActor::Member { name, email: Some(email), .. } => format!("{name} <{email}>"),
        RecordedActor::Member { name, email: None, .. } => name.clone(),
        RecordedActor::Stranger => "someone".to_owned(),
    };
    let address = entry.address.as_ref().map(|address| format!(" from {address}")).unwrap_or_default();
    let reason = entry.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let key = entry.key.as_ref().map(|key| format!(" (key {} …{})", key.id, key.hint)).unwrap_or_default();
    let role = entry.details.role.map(|role| format!(" as {role}")).unwrap_or_default();
    let (at, organisation) = (timestamp(entry.at), entry.organisation_id);
    format!("{at}  {organisation}  {}  {}{role}{key}  by {actor}{address}{reason}", action(entry), entry.subject)
}

fn action(entry: &AuditEntry) -> &str {
    match &entry.action {
        RecordedAction::Known(action) => action.as_str(),
        RecordedAction::Unknown(name) => name,
    }
}
