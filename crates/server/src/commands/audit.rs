//! `intake audit`: prints the record of what was done, for people, or as JSON for a program that collects such records.

use std::thread::sleep;
use std::time::{Duration, Instant};

use intake_domain::{AuditEntry, RecordedAction, RecordedActor, timestamp};
use intake_infra::{AuditFollower, Database, FollowError};
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::database::with_database;
use super::output::print;
use crate::export::Stop;
use crate::settings::command_line::AuditArguments;
use crate::settings::configuration::Configuration;

/// Between two looks for more.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Time after which a request to stop is noticed.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn run(arguments: &AuditArguments, configuration: &Configuration) -> anyhow::Result<()> {
    let stop = if arguments.follow { Stop::listen()? } else { Stop::default() };
    with_database(configuration, async |database| follow(arguments, database, &stop).await)
}

async fn follow(arguments: &AuditArguments, database: Database, stop: &Stop) -> anyhow::Result<()> {
    let since = arguments.since.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let mut log = AuditFollower::new(database, arguments.organisation, since);
    let (mut all, mut has_begun) = (Vec::new(), false);
    let shown = |entry: &AuditEntry| if arguments.output.json { value_of(entry).to_string() } else { line_of(entry) };
    loop {
        match log.next_page().await {
            Ok(Some(page)) if arguments.follow => {
                has_begun = true;
                page.iter().try_for_each(|entry| print(&shown(entry)))?;
                continue;
            }
            Ok(Some(page)) => {
                all.extend(page);
                continue;
            }
            Ok(None) if arguments.follow => has_begun = true,
            Ok(None) => break,
            // A follower waits for a database that is away.
            Err(FollowError::Store(_)) if has_begun && arguments.follow && !stop.is_asked() => {}
            Err(error) => return Err(error.into()),
        }
        let looked_at = Instant::now();
        while looked_at.elapsed() < LOOK_INTERVAL {
            if stop.is_asked() {
                return Ok(());
            }
            sleep(STOP_INTERVAL);
        }
    }
    all.sort_by_key(|entry| entry.at);
    if arguments.output.json {
        return print(&all.iter().map(value_of).collect::<Value>().to_string());
    }
    all.iter().try_for_each(|entry| print(&line_of(entry)))
}

fn value_of(entry: &AuditEntry) -> Value {
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
        "reason": entry.reason,
        "address": entry.address,
    })
}

fn line_of(entry: &AuditEntry) -> String {
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
    let (at, organisation) = (timestamp(entry.at), entry.organisation_id);
    format!("{at}  {organisation}  {}  {}{key}  by {actor}{address}{reason}", action(entry), entry.subject)
}

fn action(entry: &AuditEntry) -> &str {
    match &entry.action {
        RecordedAction::Known(action) => action.as_str(),
        RecordedAction::Unknown(name) => name,
    }
}
