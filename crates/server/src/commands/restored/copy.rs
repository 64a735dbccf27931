//! The copy of the audit log: what was recorded in the database before it was restored.

use std::collections::HashSet;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::Context;
use intake_domain::{
    Action, AuditEntryId, EmailAddress, IdempotencyDigest, KeyId, OrganisationId, PatientId, RecordedAction, Role,
};
use intake_infra::restored::{end_before_a_restore, missing_entries};
use intake_infra::{DatabaseUrl, SchemaError};
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::settings::arguments::parse_time;

/// An action that the copy names.
pub(super) struct Recorded {
    id: AuditEntryId,
    pub(super) at: String,
    action: String,
    actor: String,
    actor_email: String,
    pub(super) subject: String,
    /// Address by which the database knows the person whose address is the subject. None: it knows another person by
    /// it, who has changed it since.
    pub(super) person: Option<String>,
    pub(super) organisation: OrganisationId,
    /// None: it is about no key, or of a program that did not record which.
    pub(super) key: Option<KeyId>,
    key_hint: String,
    pub(super) replaced_key: Option<KeyId>,
    pub(super) key_expires_at: Option<OffsetDateTime>,
    pub(super) idempotency_digest: Option<IdempotencyDigest>,
    pub(super) role: Option<Role>,
    /// It is not in the database.
    pub(super) is_lost: bool,
}

impl Recorded {
    /// Action that was done. None: this program does not know it.
    pub(super) fn action(&self) -> Option<Action> {
        match RecordedAction::named(self.action.clone()) {
            RecordedAction::Known(action) => Some(action),
            RecordedAction::Unknown(_) => None,
        }
    }

    /// It changed something about keys, members or patients.
    pub(super) fn matters(&self) -> bool {
        !self.action().is_some_and(Action::is_harmless)
    }

    /// The patient who was erased.
    pub(super) fn erased_patient(&self) -> Option<PatientId> {
        (self.action() == Some(Action::PatientErased)).then(|| self.subject.parse().ok()).flatten()
    }

    pub(super) fn line(&self) -> String {
        let Self { at, action, actor, subject, organisation, key, key_hint, .. } = self;
        let by = if actor.is_empty() { String::new() } else { format!(", by {actor}") };
        let key = key.map(|id| format!(" (…{key_hint}, id {id})")).unwrap_or_default();
        format!("  {at}  {}: {subject}{key} (organisation {organisation}{by})\n", action.replace('_', " "))
    }

    pub(super) fn value(&self, command: Option<&str>) -> Value {
        let actor = Some(&self.actor).filter(|actor| !actor.is_empty());
        json!({
            "at": self.at,
            "action": self.action,
            "actor": actor,
            "subject": self.subject,
            "organisationId": self.organisation.to_string(),
            "keyId": self.key.map(|key| key.to_string()),
            "keyHint": self.key.map(|_| &self.key_hint),
            "command": command,
        })
    }
}

/// The copy, compared with the database.
pub(super) struct AuditCopy {
    /// The first that was lost and all that came later, in the order of their recording, even over an earlier restore.
    pub(super) entries: Vec<Recorded>,
    /// It ends before an operator last took the database for the register.
    pub(super) is_older: bool,
}

/// Reads what `intake audit --json` printed: an array or, by `--follow` and `--state`, one object after another, the
/// last of which may be cut off. Entries may be there twice.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<Recorded>> {
    let name = || format!("--audit: {}", path.display());
    let file = BufReader::new(File::open(path).with_context(name)?);
    let (mut entries, mut known) = (Vec::new(), HashSet::new());
    for value in serde_json::Deserializer::from_reader(file).into_iter::<Value>() {
        let mut found = match value {
            Ok(Value::Array(all)) => all,
            Ok(one) => vec![one],
            Err(error) if error.is_eof() && !entries.is_empty() => break,
            Err(error) => return Err(error).with_context(name),
        };
        // An array is in the order of a clock. Of one database the numbers tell the order.
        found.sort_by_key(|entry| entry["number"].as_i64());
        for entry in &found {
            let entry = recorded(entry).with_context(name)?;
            if known.insert((entry.organisation, entry.id)) {
                entries.push(entry);
            }
        }
    }
    Ok(entries)
}

impl AuditCopy {
    pub(super) fn compare(mut entries: Vec<Recorded>, owner: &DatabaseUrl) -> Result<Self, SchemaError> {
        let ids: Vec<_> = entries.iter().map(|entry| entry.id).collect();
        let missing: HashSet<_> = missing_entries(owner, &ids)?.into_iter().collect();
        for entry in &mut entries {
            entry.is_lost = missing.contains(&entry.id);
        }
        let first_lost = entries.iter().position(|entry| entry.is_lost && entry.matters());
        entries.drain(..first_lost.unwrap_or(entries.len()));
        find_people(&mut entries);
        Ok(Self { entries, is_older: end_before_a_restore(owner, &ids)? })
    }
}

/// An address by which people are compared; as it is, if it is none.
pub(super) fn folded(email: &str) -> String {
    email.parse::<EmailAddress>().map_or_else(|_| email.to_owned(), |email| email.folded())
}

/// Finds for each entry the address that its person had at the restored moment.
fn find_people(entries: &mut [Recorded]) {
    let mut changes: Vec<(OrganisationId, String, String)> = Vec::new();
    for entry in entries {
        let mut person = Some(entry.subject.clone());
        for (_, before, after) in changes.iter().rev().filter(|(organisation, ..)| *organisation == entry.organisation)
        {
            match person.as_deref().map(folded) {
                Some(address) if address == folded(after) => person = Some(before.clone()),
                Some(address) if address == folded(before) => person = None,
                _ => {}
            }
        }
        entry.person = person;
        if entry.is_lost && entry.action() == Some(Action::EmailChanged) {
            changes.push((entry.organisation, entry.actor_email.clone(), entry.subject.clone()));
        }
    }
}

pub(super) fn recorded(entry: &Value) -> anyhow::Result<Recorded> {
    let text = |path: &str| entry.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Recorded {
        id: text("/id").parse().context("an entry has no id")?,
        at: text("/at"),
        action: text("/action"),
        actor: text("/actor/name"),
        actor_email: text("/actor/email"),
        subject: text("/subject"),
        person: None,
        organisation: text("/organisationId").parse().context("an entry has no organisation")?,
        key: text("/keyId").parse().ok(),
        key_hint: text("/keyHint"),
        replaced_key: text("/replacedKeyId").parse().ok(),
        key_expires_at: parse_time(&text("/keyExpiresAt")).ok(),
        idempotency_digest: text("/idempotencyDigest").parse().ok(),
        role: text("/role").parse().ok(),
        is_lost: false,
    })
}
