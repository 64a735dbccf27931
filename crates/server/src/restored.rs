//! `intake restored`: what an operator does after a backup was restored, before the service is started again. Tells what was
//! done since the restored moment, as far as a copy of the record tells, and can revoke every key that is there.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use intake_domain::{AuditEntryId, KeyStore, OrganisationId, list_keys, revoke_key, timestamp};
use intake_infra::environment::assert_environment;
use intake_infra::restored::{accept, missing_deeds, newest_deed};
use intake_infra::{Database, KeyUses, PostgresKeyStore};
use serde_json::json;

use crate::backend::{Backend, explain};
use crate::command_line::Output;
use crate::commands::{DEADLINE, deed, print_result};
use crate::configuration::Configuration;

/// What changes neither keys nor who gets in, and is not told.
const HARMLESS: [&str; 8] = [
    "signed_in",
    "signed_in_by_recovery_code",
    "signed_in_by_passkey",
    "sign_in_failed",
    "code_failed",
    "signed_out",
    "name_changed",
    "patient_shown",
];

/// What the copy of the record says was done.
struct Recorded {
    id: AuditEntryId,
    at: String,
    action: String,
    actor: String,
    subject: String,
    organisation_id: String,
}

pub(crate) fn run(
    audit: Option<&PathBuf>,
    revokes_keys: bool,
    output: &Output,
    configuration: &Configuration,
) -> anyhow::Result<()> {
    let recorded = audit.map(|path| read(path)).transpose()?;
    if configuration.database.is_none() {
        bail!("DATABASE_URL is not set, and the embedded database is never one that was restored");
    }
    let backend = Backend::reach_as_owner(configuration)?;
    assert_environment(&backend.owner, configuration.environment)?;
    let owner = explain("INTAKE_MIGRATION_DATABASE_URL");
    let newest = newest_deed(&backend.owner).map_err(&owner)?.map(timestamp);
    let copied_until = recorded.as_ref().and_then(|recorded| recorded.iter().map(|entry| entry.at.clone()).max());
    let lost = match recorded {
        Some(recorded) => Some(lost(&backend, recorded)?),
        None => None,
    };
    // Before any service may start again.
    let revoked = if revokes_keys { revoke_keys(&backend)? } else { 0 };
    accept(&backend.owner).map_err(&owner)?;
    let value = json!({
        "newestDeedAt": newest,
        "revokedKeys": revoked,
        "copiedUntil": copied_until,
        "lost": lost.as_ref().map(|lost| lost.iter().map(value_of).collect::<Vec<_>>()),
    });
    print_result(
        output,
        &value,
        &text_of(newest.as_deref(), copied_until.as_deref(), lost.as_deref(), revokes_keys.then_some(revoked)),
    )
}

/// Reads a copy of the table `audit_entries`, as psql writes it with `\copy … CSV HEADER`.
fn read(path: &Path) -> anyhow::Result<Vec<Recorded>> {
    let name = || format!("--audit: {}", path.display());
    let mut reader = csv::Reader::from_path(path).with_context(name)?;
    let heads = reader.headers().with_context(name)?.clone();
    let column = |head: &str| {
        heads.iter().position(|found| found == head).with_context(|| format!("{}: there is no column {head}", name()))
    };
    let columns = (column("id")?, column("at")?, column("action")?, column("actor")?, column("subject")?);
    let organisation = column("organisation_id")?;
    let (id, at, action, actor, subject) = columns;
    let entry = |row: csv::StringRecord| {
        let cell = |column: usize| row.get(column).unwrap_or_default().to_owned();
        let id = cell(id).parse().with_context(|| format!("{}: an entry has no id", name()))?;
        let (at, action, actor, subject) = (cell(at), cell(action), cell(actor), cell(subject));
        anyhow::Ok(Recorded { id, at, action, actor, subject, organisation_id: cell(organisation) })
    };
    reader.records().map(|row| entry(row.with_context(name)?)).collect()
}

/// What was done and is not in the database, the oldest first.
fn lost(backend: &Backend, recorded: Vec<Recorded>) -> anyhow::Result<Vec<Recorded>> {
    let ids: Vec<_> = recorded.iter().map(|entry| entry.id).collect();
    let missing = missing_deeds(&backend.owner, &ids)?;
    let is_told = |entry: &Recorded| missing.contains(&entry.id) && !HARMLESS.contains(&entry.action.as_str());
    let mut lost: Vec<_> = recorded.into_iter().filter(is_told).collect();
    lost.sort_by(|one, other| one.at.cmp(&other.at));
    Ok(lost)
}

/// Revokes every active key; gives how many there were.
fn revoke_keys(backend: &Backend) -> anyhow::Result<usize> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let keys = PostgresKeyStore::new(Database::new(&backend.owner, DEADLINE), KeyUses::default());
    runtime.block_on(async {
        let mut revoked = 0;
        let organisations: Vec<OrganisationId> = keys.organisations().await?.into_iter().map(|(id, _)| id).collect();
        for organisation in organisations {
            for key in list_keys(&keys, organisation).await? {
                // Expired ones too: the end of a key may have been changed.
                if key.revoked_at.is_none() {
                    revoke_key(&keys, key.id, None, &deed()).await?;
                    revoked += 1;
                }
            }
        }
        Ok(revoked)
    })
}

fn value_of(entry: &Recorded) -> serde_json::Value {
    let actor = Some(&entry.actor).filter(|actor| !actor.is_empty());
    json!({
        "at": entry.at,
        "action": entry.action,
        "actor": actor,
        "subject": entry.subject,
        "organisationId": entry.organisation_id,
    })
}

fn text_of(
    newest: Option<&str>,
    copied_until: Option<&str>,
    lost: Option<&[Recorded]>,
    revoked: Option<usize>,
) -> String {
    let mut text = match newest {
        Some(at) => format!("The latest recorded action was at {at}: anything done later is not in this database.\n"),
        None => "Nothing is on record in this database.\n".to_owned(),
    };
    if let Some(at) = copied_until {
        text += &format!("The copy of the record ends at {at}.\n");
    }
    match lost {
        None => text += "Without a copy of the record (--audit FILE) nobody can tell what that was.\n",
        Some([]) => text += "The copy of the record holds nothing later about keys, members or second factors.\n",
        Some(lost) => {
            text += "These actions were lost. Redo those that must still apply:\n";
            for Recorded { at, action, actor, subject, organisation_id, .. } in lost {
                let by = if actor.is_empty() { String::new() } else { format!(", by {actor}") };
                text +=
                    &format!("  {at}  {}: {subject} (organisation {organisation_id}{by})\n", action.replace('_', " "));
            }
        }
    }
    text += &match revoked {
        Some(count) => format!("Revoked {count} keys: make new ones with `intake key create` or on the dashboard.\n"),
        None => "No key was revoked by this command: keys that were revoked after that moment work again.\n".to_owned(),
    };
    text + "The service starts on this database again."
}
