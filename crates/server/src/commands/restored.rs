//! `intake restored`: what an operator does after a backup was restored, before the service is started again. Tells
//! what was done since the restored moment, as far as a copy of the audit log tells, and can revoke every key that is
//! there.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use intake_domain::{Action, AllowedNetworks, AuditEntryId, RecordedAction, timestamp};
use intake_infra::environment::assert_environment_as_owner;
use intake_infra::restored::{NewestPatient, accept, missing_entries, newest_entry, newest_patients};
use intake_infra::{SchemaError, revoke_all_keys};
use serde_json::{Value, json};

use crate::backend::{Backend, explain};
use crate::commands::operator::audit as context;
use crate::commands::output::print_result;
use crate::settings::arguments::{Output, Run};
use crate::settings::configuration::Configuration;

/// An action that the copy of the audit log names.
struct Recorded {
    id: AuditEntryId,
    at: String,
    action: String,
    actor: String,
    subject: String,
    organisation_id: String,
    /// Empty: it is about no key.
    key_id: String,
    key_hint: String,
}

impl Recorded {
    /// The command that does it again, for a shell. None: nothing on the command line does.
    fn command(&self) -> Option<String> {
        let Self { subject, organisation_id, key_id, .. } = self;
        let organisation = format!("--organisation {organisation_id}");
        // Names can hold anything; a list of networks holds no arrow.
        let networks = quoted(subject.rsplit(" → ").next().unwrap_or_default());
        // With the option in one word: a name may begin like another option.
        let email = format!("--email={}", quoted(subject));
        let (key_name, allowed) = AllowedNetworks::split_name(subject);
        let RecordedAction::Known(action) = RecordedAction::named(self.action.clone()) else { return None };
        Some(match action {
            Action::KeyRevoked if key_id.is_empty() => format!("intake key list {organisation}"),
            Action::KeyPaused => format!("intake key pause {key_id}"),
            Action::KeyResumed => format!("intake key resume {key_id}"),
            Action::KeyNetworksChanged => format!("intake key networks {key_id} --allow {networks}"),
            Action::KeyRevoked => format!("intake key revoke {key_id}"),
            Action::KeyCreated | Action::KeyReplaced if allowed.are_any() => {
                format!("intake key create {organisation} --name={}", quoted(key_name))
            }
            Action::KeyCreated | Action::KeyReplaced => {
                let (name, allowed) = (quoted(key_name), quoted(&allowed.to_string()));
                format!("intake key create {organisation} --name={name} --allow {allowed}")
            }
            Action::KeyMarkCleared if !key_id.is_empty() => format!("intake key clear-sent-in-clear {key_id}"),
            Action::PatientErased => format!("intake patient erase {organisation} --patient={}", quoted(subject)),
            Action::MemberRemoved => format!("intake member remove {organisation} {email}"),
            // Which role it was is not on record, and none is taken without being named.
            Action::MemberInvited => format!("intake member invite {organisation} {email} --role ROLE"),
            Action::InvitationWithdrawn => format!("intake member withdraw-invitation {organisation} {email}"),
            Action::PasswordResetIssued => format!("intake member reset-password {organisation} {email}"),
            Action::OrganisationSuspended => format!("intake organisation suspend {organisation_id}"),
            Action::OrganisationResumed => format!("intake organisation resume {organisation_id}"),
            Action::OrganisationClosed => format!("intake organisation close {organisation_id}"),
            Action::OrganisationErased => format!("intake organisation erase {organisation_id}"),
            _ => return None,
        })
    }

    fn line(&self) -> String {
        let Self { at, action, actor, subject, organisation_id, key_id, key_hint, .. } = self;
        let by = if actor.is_empty() { String::new() } else { format!(", by {actor}") };
        let key = if key_id.is_empty() { String::new() } else { format!(" (…{key_hint}, id {key_id})") };
        let line =
            format!("  {at}  {}: {subject}{key} (organisation {organisation_id}{by})\n", action.replace('_', " "));
        line + &self.command().map(|command| format!("      {command}\n")).unwrap_or_default()
    }
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

pub(crate) fn run(
    audit: Option<&PathBuf>,
    revokes_keys: bool,
    run: &Run,
    output: &Output,
    configuration: &Configuration,
) -> anyhow::Result<()> {
    let recorded = audit.map(|path| read(path)).transpose()?;
    if configuration.database.is_none() {
        bail!(
            "neither DATABASE_URL nor DATABASE_URL_FILE is set, and the embedded database is never one that was restored"
        );
    }
    let backend = Backend::reach_as_owner(configuration)?;
    assert_environment_as_owner(&backend.owner, configuration.environment)?;
    let owner = explain(backend.owner_setting);
    let newest = newest_entry(&backend.owner).map_err(&owner)?.map(timestamp);
    let patients = newest_patients(&backend.owner).map_err(&owner)?;
    let copied_until = recorded.as_ref().and_then(|recorded| recorded.iter().map(|entry| entry.at.clone()).max());
    let lost = match recorded {
        Some(recorded) => Some(lost(&backend, recorded).map_err(&owner)?),
        None => None,
    };
    // Before any service may start again.
    let revoked = if revokes_keys { revoke_all_keys(&backend.owner, || context(run)).map_err(&owner)? } else { 0 };
    accept(&backend.owner).map_err(&owner)?;
    let value = json!({
        "newestAuditEntryAt": newest,
        "revokedKeys": revoked,
        "copiedUntil": copied_until,
        "newestPatients": patients.iter().map(newest_of).collect::<Vec<_>>(),
        "lost": lost.as_ref().map(|lost| lost.iter().map(value_of).collect::<Vec<_>>()),
    });
    let revoked = revokes_keys.then_some(revoked);
    let text = text_of(newest.as_deref(), copied_until.as_deref(), lost.as_deref(), &patients, revoked);
    print_result(output, &value, &text)
}

/// Reads what `intake audit --json` printed: an array or, by `--follow`, one object after another, the last of which
/// may be cut off.
fn read(path: &Path) -> anyhow::Result<Vec<Recorded>> {
    let name = || format!("--audit: {}", path.display());
    let text = std::fs::read(path).with_context(name)?;
    let mut entries = Vec::new();
    for value in serde_json::Deserializer::from_slice(&text).into_iter::<Value>() {
        match value {
            Ok(Value::Array(all)) => entries.extend(all),
            Ok(one) => entries.push(one),
            Err(error) if error.is_eof() && !entries.is_empty() => break,
            Err(error) => return Err(error).with_context(name),
        }
    }
    entries.iter().map(|entry| recorded(entry).with_context(name)).collect()
}

fn recorded(entry: &Value) -> anyhow::Result<Recorded> {
    let text = |path: &str| entry.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Recorded {
        id: text("/id").parse().context("an entry has no id")?,
        at: text("/at"),
        action: text("/action"),
        actor: text("/actor/name"),
        subject: text("/subject"),
        organisation_id: text("/organisationId"),
        key_id: text("/keyId"),
        key_hint: text("/keyHint"),
    })
}

/// What was done and is not in the database, the oldest first.
fn lost(backend: &Backend, recorded: Vec<Recorded>) -> Result<Vec<Recorded>, SchemaError> {
    let ids: Vec<_> = recorded.iter().map(|entry| entry.id).collect();
    let missing = missing_entries(&backend.owner, &ids)?;
    let is_harmless = |entry: &Recorded| matches!(RecordedAction::named(entry.action.clone()), RecordedAction::Known(action) if action.is_harmless());
    let mut lost: Vec<_> =
        recorded.into_iter().filter(|entry| missing.contains(&entry.id) && !is_harmless(entry)).collect();
    lost.sort_by(|one, other| one.at.cmp(&other.at));
    Ok(lost)
}

fn newest_of(newest: &NewestPatient) -> Value {
    json!({
        "organisationId": newest.organisation.to_string(),
        "name": newest.name,
        "createdAt": newest.created_at.map(timestamp),
    })
}

fn value_of(entry: &Recorded) -> Value {
    let actor = Some(&entry.actor).filter(|actor| !actor.is_empty());
    json!({
        "at": entry.at,
        "action": entry.action,
        "actor": actor,
        "subject": entry.subject,
        "organisationId": entry.organisation_id,
        "keyId": Some(&entry.key_id).filter(|id| !id.is_empty()),
        "keyHint": Some(&entry.key_hint).filter(|hint| !hint.is_empty()),
        "command": entry.command(),
    })
}

fn text_of(
    newest: Option<&str>,
    copied_until: Option<&str>,
    lost: Option<&[Recorded]>,
    patients: &[NewestPatient],
    revoked: Option<usize>,
) -> String {
    let mut text = match newest {
        Some(at) => format!("The latest recorded action was at {at}: anything done later is not in this database.\n"),
        None => "Nothing is on record in this database.\n".to_owned(),
    };
    if let Some(at) = copied_until {
        text += &format!("The copy of the audit log ends at {at}.\n");
    }
    match lost {
        None => text += "Without a copy of the audit log (--audit FILE) nobody can tell what that was.\n",
        Some([]) => text += "The copy of the audit log holds nothing later about keys, members or second factors.\n",
        Some(lost) => {
            text += "These actions were lost. Redo those that must still apply, on the dashboard or by the commands below them:\n";
            text.extend(lost.iter().map(Recorded::line));
        }
    }
    text += "Patients created later than these are not in this database. Ask the integrations of each organisation to send them again, \
        with the same Idempotency-Key:\n";
    for NewestPatient { organisation, name, created_at } in patients {
        let newest = created_at.map_or("no patient".to_owned(), |at| format!("created {}", timestamp(at)));
        text += &format!("  {newest}  (organisation {organisation}, {name})\n");
    }
    text += &match revoked {
        Some(count) => {
            let keys = if count == 1 { "key" } else { "keys" };
            format!("Revoked {count} {keys}: make new ones with `intake key create` or on the dashboard.\n")
        }
        None => "No key was revoked by this command: keys that were revoked or paused after that moment work again.\n"
            .to_owned(),
    };
    text += "Everyone was signed out, and password reset links no longer work. Passwords and second factors are those of that \
        moment.\n";
    text + "The service starts on this database again."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_is_repeated_by_its_command() {
        for (action, expected) in [
            (Action::KeyPaused, Some("intake key pause 1-2")),
            (Action::KeyNetworksChanged, Some("intake key networks 1-2 --allow '10.0.0.0/8, ::1'")),
            (Action::KeyResumed, Some("intake key resume 1-2")),
            (Action::KeyRevoked, Some("intake key revoke 1-2")),
            (Action::KeyRenamed, None),
            (Action::KeyCreated, Some("intake key create --organisation 7 --name='-x → A: any → 10.0.0.0/8, ::1'")),
            (Action::OrganisationSuspended, Some("intake organisation suspend 7")),
            (Action::OrganisationClosed, Some("intake organisation close 7")),
        ] {
            assert!(!action.is_harmless(), "it is listed");
            let entry = json!({
                "id": "018f0000-0000-7000-8000-000000000000", "action": action.as_str(),
                "subject": "-x → A: any → 10.0.0.0/8, ::1", "keyId": "1-2", "organisationId": "7",
            });
            assert_eq!(recorded(&entry).unwrap().command().as_deref(), expected, "{action:?}");
        }
        let entry = json!({
            "id": "018f0000-0000-7000-8000-000000000000", "action": Action::KeyCreated.as_str(),
            "subject": "Desk: only from 10.0.0.0/8, ::1", "keyId": "1-2", "organisationId": "7",
        });
        let expected = "intake key create --organisation 7 --name='Desk' --allow '10.0.0.0/8, ::1'";
        assert_eq!(recorded(&entry).unwrap().command().as_deref(), Some(expected));
    }
}
