//! `intake key pause` and `intake key resume`: one key, or all of an organisation together.

use intake_domain::{
    KeyRecord, KeyStateStore, KeyStatus, ManageKeysError, OrganisationId, PauseOutcome, StoppedKey, timestamp,
};
use intake_edge as edge;
use intake_infra::PostgresKeyStore;
use serde_json::{Value, json};

use super::operator::audit;
use super::output::print_change;
use crate::settings::configuration::Configuration;
use crate::settings::key_command::PauseArguments;

pub(super) async fn pause(
    keys: &PostgresKeyStore,
    PauseArguments { key, all, run, output }: &PauseArguments,
    configuration: &Configuration,
) -> anyhow::Result<()> {
    let audit = audit(run, configuration);
    if let Some(organisation) = *all {
        let stopped = keys.stop_all(organisation, &audit).await?;
        let text = match stopped.len() {
            0 => "Nothing to do: no key is active.".to_owned(),
            count => format!("Paused: {count}. Resume them with `intake key resume --all {organisation}`."),
        };
        return print_change(output, &value_of_all(organisation, &stopped), &text);
    }
    let Some(key) = *key else { return Ok(()) };
    let (was, at) = match keys.pause(key, None, &audit).await? {
        PauseOutcome::Paused { at } => ("was paused", timestamp(at)),
        PauseOutcome::AlreadyPaused { at } => ("was already paused", timestamp(at)),
    };
    let value = json!({ "id": key.to_string(), "pausedAt": at });
    print_change(output, &value, &format!("Key {key} {was} at {at}."))
}

/// Resumes a key, or those that were stopped together last.
pub(super) async fn resume(
    keys: &PostgresKeyStore,
    PauseArguments { key, all, run, output }: &PauseArguments,
    configuration: &Configuration,
) -> anyhow::Result<()> {
    let audit = audit(run, configuration);
    if let Some(organisation) = *all {
        let resumed = match keys.stops(organisation).await?.iter().find(|stop| stop.is_of_all) {
            Some(last) => keys.resume_stopped(organisation, last.id, &audit).await?,
            None => Vec::new(),
        };
        let text = match resumed.len() {
            0 => "Nothing to do: no keys are paused that were paused together.".to_owned(),
            count => format!("Resumed: {count}."),
        };
        return print_change(output, &value_of_all(organisation, &resumed), &text);
    }
    let Some(key) = *key else { return Ok(()) };
    keys.resume(key, None, &audit).await?;
    let value = json!({ "id": key.to_string(), "pausedAt": null });
    let (_, stored) = keys.find(key).await?.ok_or(ManageKeysError::NoSuchKey(key))?;
    let text = match reason_of_refusal(&stored) {
        "" => format!("Key {key} works again."),
        reason => format!("Key {key} is no longer paused.{reason}"),
    };
    print_change(output, &value, &text)
}

/// The reason why requests with the key are refused all the same. Empty: none.
pub(super) fn reason_of_refusal(key: &KeyRecord) -> &'static str {
    match key.status(edge::now()) {
        KeyStatus::Active | KeyStatus::ActiveUntil(_) => "",
        KeyStatus::Suspended(_) => " Its requests are refused, because its organisation is suspended.",
        KeyStatus::Paused(_) => " Its requests are refused, because it is paused.",
        KeyStatus::Expired(_) => " Its requests are refused, because it has expired.",
        KeyStatus::Revoked(_) => " Its requests are refused, because it was revoked.",
    }
}

fn value_of_all(organisation: OrganisationId, keys: &[StoppedKey]) -> Value {
    let ids: Vec<_> = keys.iter().map(|key| key.id.to_string()).collect();
    json!({ "organisationId": organisation.to_string(), "keys": ids })
}
