//! `intake key`: makes, replaces, lists, limits, pauses and revokes API keys.

use anyhow::{Context, anyhow};
use intake_domain::{
    AllowedNetworks, AuditContext, IssuedKey, KeyContact, KeyDescriptionStore, KeyId, KeyList, KeyRecord, KeyRequest,
    KeySecret, KeyStateStore, KeyStatus, ManageKeysError, Name, OrganisationId, Replacement, RevokeOutcome, create_key,
    list_keys, replace_leaked_key, timestamp,
};
use intake_edge as edge;
use intake_infra::{Database, PostgresKeyStore, PostgresOrganisations};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use super::contact::contact;
use super::operator::audit;
use super::output::{print_change, print_made, print_result};
use super::pause::{pause, reason_of_refusal, resume};
use super::usage::usage;
use crate::settings::arguments::{Output, Run};
use crate::settings::configuration::Configuration;
use crate::settings::key_command::{End, EndsAfter, KeyArguments, KeyCommand};

const SHOWN_ONCE: &str = "is shown this once and cannot be retrieved later:";

pub(crate) async fn key(command: KeyCommand, database: Database, configuration: &Configuration) -> anyhow::Result<()> {
    let keys = &PostgresKeyStore::new(database.clone());
    match command {
        KeyCommand::Usage(arguments) => usage(&arguments, &database).await,
        KeyCommand::Create { organisation, name, expires, allow, contact, run, output } => {
            let request = KeyRequest {
                organisation_id: organisation,
                name: Name::new(name).context("--name")?,
                expires_at: expires,
                allowed_networks: allow,
                contact,
                replaces: None,
                id: KeyId::new(edge::now(), edge::random()),
                secret: KeySecret::new(edge::random()),
            };
            let made = create_key(keys, &configuration.key_format, request, &audit(&run, configuration))
                .await
                .map_err(explain)?;
            let text = format!("Created key {} ({}). It {SHOWN_ONCE}\n{}", made.id, made.name, made.key.expose());
            print_made(&output, &value_of_made(&made), &text, || unprinted(&made))
        }
        KeyCommand::Replace { key, ends_after, ends_within, leaked, expires, run, output } => {
            let end = match leaked {
                true => OldEnd::AtOnce,
                false => OldEnd::Later { ends_after, within: Duration::days(ends_within.into()) },
            };
            replace(keys, configuration, key, end, expires, &run, &output).await
        }
        KeyCommand::List { organisation, output } => {
            list(keys, &PostgresOrganisations::new(database), organisation, &output).await
        }
        KeyCommand::ClearSentInClear(KeyArguments { key, run, output }) => {
            clear_mark(keys, key, &audit(&run, configuration), &output).await
        }
        KeyCommand::Contact { set, key: KeyArguments { key, run, output } } => {
            contact(keys, key, set.as_ref(), &audit(&run, configuration), &output).await
        }
        KeyCommand::Pause(arguments) => pause(keys, &arguments, configuration).await,
        KeyCommand::Resume(arguments) => resume(keys, &arguments, configuration).await,
        KeyCommand::Networks { allow, key: KeyArguments { key, run, output } } => {
            if let Some(networks) = &allow {
                keys.set_allowed_networks(key, None, networks, &audit(&run, configuration)).await?;
            }
            print_networks(keys, key, &output).await
        }
        KeyCommand::Revoke(KeyArguments { key, run, output }) => {
            revoke(keys, key, &audit(&run, configuration), &output).await
        }
    }
}

fn value_of_made(made: &IssuedKey) -> Value {
    json!({
        "id": made.id.to_string(),
        "organisationId": made.organisation_id.to_string(),
        "name": made.name.as_str(),
        "key": made.key.expose(),
    })
}

/// Says which command helps.
fn explain(error: ManageKeysError) -> anyhow::Error {
    match error {
        ManageKeysError::OrganisationSuspended(id) => anyhow!("{error}: `intake organisation resume {id}` comes first"),
        ManageKeysError::TooLong(_) => anyhow!("{error}: give an earlier end with `--expires`"),
        ManageKeysError::NothingToReplace => {
            anyhow!("the key was revoked: make another one with `intake key create`")
        }
        _ => error.into(),
    }
}

/// End of a key that is replaced.
enum OldEnd {
    /// Some time after the new key has created a patient, and within a time from now.
    Later {
        ends_after: EndsAfter,
        within: Duration,
    },
    AtOnce,
}

/// Makes a key with the name and the note of another one, which ends.
async fn replace(
    keys: &PostgresKeyStore,
    configuration: &Configuration,
    old: KeyId,
    end: OldEnd,
    expires: Option<End>,
    run: &Run,
    output: &Output,
) -> anyhow::Result<()> {
    let (organisation_id, old) = keys.find(old).await?.ok_or(ManageKeysError::NoSuchKey(old))?;
    let (audit, revocation) = (audit(run, configuration), audit(run, configuration));
    let replacement = match end {
        OldEnd::Later { ends_after, within } => {
            Replacement { key: old.id, ends_after: ends_after.duration(), ends_by: audit.at + within }
        }
        OldEnd::AtOnce => Replacement::at_once(old.id, audit.at),
    };
    let request = KeyRequest {
        organisation_id,
        name: Name::stored(old.name.clone())?,
        expires_at: match expires {
            Some(End::Never) => None,
            Some(End::At(at)) => Some(at),
            None => old.expires_at.map(|at| audit.at + (at - old.created_at)),
        },
        allowed_networks: AllowedNetworks::default(),
        contact: KeyContact::default(),
        replaces: Some(replacement),
        id: KeyId::new(audit.at, edge::random()),
        secret: KeySecret::new(edge::random()),
    };
    let format = &configuration.key_format;
    let made = match end {
        OldEnd::Later { .. } => create_key(keys, format, request, &audit).await,
        OldEnd::AtOnce => replace_leaked_key(keys, keys, format, request, &audit, &revocation).await,
    };
    print_replacement(&made.map_err(explain)?, &old, replacement, &end, output)
}

fn print_replacement(
    made: &IssuedKey,
    old: &KeyRecord,
    replacement: Replacement,
    end: &OldEnd,
    output: &Output,
) -> anyhow::Result<()> {
    let latest = old.expires_at.map_or(replacement.ends_by, |at| at.min(replacement.ends_by));
    let mut value = value_of_made(made);
    if let Some(members) = value.as_object_mut() {
        members.insert("expiresAt".to_owned(), made.expires_at.map(timestamp).into());
        members.insert("replaces".to_owned(), old.id.to_string().into());
        members.insert("replacedEndsAfterSeconds".to_owned(), replacement.ends_after.whole_seconds().into());
        members.insert("replacedExpiresAt".to_owned(), timestamp(latest).into());
    }
    let old_works = match end {
        OldEnd::Later { ends_after, .. } => {
            format!("works {}, at the latest until {}", ends_after.until(), timestamp(latest))
        }
        OldEnd::AtOnce => "is revoked".to_owned(),
    };
    let text = format!(
        "Created key {} ({}). The old key, {} (…{}), {old_works}. The new one {SHOWN_ONCE}\n{}",
        made.id,
        made.name,
        old.id,
        old.hint,
        made.key.expose()
    );
    print_made(output, &value, &text, || unprinted(made))
}

/// Says what to do with a key that nobody has seen.
fn unprinted(made: &IssuedKey) -> String {
    format!("key {0} was made and works: end it with `intake key revoke {0}`", made.id)
}

async fn clear_mark(keys: &PostgresKeyStore, key: KeyId, audit: &AuditContext, output: &Output) -> anyhow::Result<()> {
    let was_marked = keys.clear_sent_in_clear(key, audit).await?;
    let now = if was_marked { "no longer" } else { "not" };
    let text = format!("Key {key} is {now} marked as sent in clear.");
    print_change(output, &json!({ "id": key.to_string(), "wasMarked": was_marked }), &text)
}

async fn print_networks(keys: &PostgresKeyStore, key: KeyId, output: &Output) -> anyhow::Result<()> {
    let (_, stored) = keys.find(key).await?.ok_or(ManageKeysError::NoSuchKey(key))?;
    let (networks, reason) = (&stored.allowed_networks, reason_of_refusal(&stored));
    let value = json!({ "id": key.to_string(), "allowedNetworks": value_of_networks(networks) });
    let end = if reason.is_empty() { "" } else { "." };
    print_change(output, &value, &format!("Key {key} is accepted from: {networks}{end}{reason}"))
}

async fn revoke(keys: &PostgresKeyStore, key: KeyId, audit: &AuditContext, output: &Output) -> anyhow::Result<()> {
    let (was, at) = match keys.revoke(key, None, audit).await? {
        RevokeOutcome::Revoked { at } => ("was revoked", timestamp(at)),
        RevokeOutcome::AlreadyRevoked { at } => ("was already revoked", timestamp(at)),
    };
    print_change(output, &json!({ "id": key.to_string(), "revokedAt": at }), &format!("Key {key} {was} at {at}."))
}

/// Lists the keys of an organisation, or with their organisations those of all.
async fn list(
    keys: &dyn KeyList,
    organisations: &PostgresOrganisations,
    organisation: Option<OrganisationId>,
    output: &Output,
) -> anyhow::Result<()> {
    let organisations = match organisation {
        Some(organisation) => vec![(organisation, None)],
        None => organisations.all().await?.into_iter().map(|found| (found.id, Some(found.name))).collect(),
    };
    let now = edge::now();
    let (mut values, mut lines) = (Vec::new(), Vec::new());
    for (organisation, name) in organisations {
        for key in list_keys(keys, organisation).await? {
            let mut value = value_of(&key);
            if let (Some(at), Some(members)) = (key.paused_at, value.as_object_mut()) {
                members.insert("pausedAt".to_owned(), timestamp(at).into());
            }
            if let (false, Some(members)) = (key.allowed_networks.are_any(), value.as_object_mut()) {
                members.insert("allowedNetworks".to_owned(), value_of_networks(&key.allowed_networks));
            }
            if let (false, Some(members)) = (key.contact.is_empty(), value.as_object_mut()) {
                members.insert("contact".to_owned(), key.contact.as_str().into());
            }
            let mut line = line_of(&key, now);
            if let (Some(name), Some(members)) = (&name, value.as_object_mut()) {
                members.insert("organisationId".to_owned(), organisation.to_string().into());
                members.insert("organisationName".to_owned(), name.as_str().into());
                line += &format!("  {organisation}  {name}");
            }
            values.push(value);
            lines.push(line);
        }
    }
    let text = if lines.is_empty() { "There is no key yet.".to_owned() } else { lines.join("\n") };
    print_result(output, &Value::Array(values), &text)
}

fn value_of(key: &KeyRecord) -> Value {
    json!({
        "id": key.id.to_string(),
        "name": key.name,
        "hint": key.hint,
        "createdAt": timestamp(key.created_at),
        "lastUsedAt": key.last_used_at.map(timestamp),
        "expiresAt": key.expires_at.map(timestamp),
        "revokedAt": key.revoked_at.map(timestamp),
    })
}

/// The networks of a key, `any` if there is no limit.
fn value_of_networks(networks: &AllowedNetworks) -> Value {
    networks.to_string().split(", ").collect()
}

fn line_of(key: &KeyRecord, now: OffsetDateTime) -> String {
    let status = match key.status(now) {
        KeyStatus::Revoked(at) => format!("revoked {}", timestamp(at)),
        KeyStatus::Suspended(at) => format!("suspended {}", timestamp(at)),
        KeyStatus::Paused(at) => format!("paused {}", timestamp(at)),
        KeyStatus::Expired(at) => format!("expired {}", timestamp(at)),
        KeyStatus::ActiveUntil(at) => format!("active, expires {}", timestamp(at)),
        KeyStatus::Active => "active".to_owned(),
    };
    let used = key.last_used_at.map_or("never used".to_owned(), |at| format!("last used {}", timestamp(at)));
    let warning = if key.must_be_replaced(now) { "  SENT IN CLEAR: replace it" } else { "" };
    let networks = match key.allowed_networks.are_any() {
        true => String::new(),
        false => format!(", only from {}", key.allowed_networks),
    };
    let contact = if key.contact.is_empty() { String::new() } else { format!(", contact: {}", key.contact) };
    format!("{}  …{}  {}  {status}, {used}{networks}{contact}{warning}", key.id, key.hint, key.name)
}
