//! `intake key usage`: which keys send most, and which are refused, over all organisations.

use intake_domain::timestamp;
use intake_edge as edge;
use intake_infra::{Database, KeyUsage, OwnedKey, key_usage};
use serde_json::{Value, json};

use super::organisation::assert_organisation;
use super::output::print_result;
use crate::settings::key_command::UsageArguments;

pub(crate) async fn usage(arguments: &UsageArguments, database: &Database) -> anyhow::Result<()> {
    assert_organisation(database, arguments.organisation).await?;
    let since = edge::now().date() - time::Duration::days(i64::from(arguments.days) - 1);
    let found = key_usage(database, since, arguments.organisation, arguments.limit).await?;
    let lines: Vec<_> = found.iter().map(line_of).collect();
    let text = if lines.is_empty() { format!("No request since {since}.") } else { lines.join("\n") };
    print_result(&arguments.output, &found.iter().map(value_of).collect(), &text)
}

fn value_of(usage: &KeyUsage) -> Value {
    json!({
        "organisationId": usage.key.organisation_id().to_string(),
        "organisationName": usage.key.organisation_name,
        "keyId": usage.key.key_id().to_string(),
        "keyName": usage.key.name,
        "hint": usage.key.hint,
        "accepted": usage.accepted,
        "refused": usage.refused,
        "rateExceeded": usage.limited,
        "failed": usage.failed,
        "fieldRefusedMost": usage.field,
        "lastRefusedAt": usage.refused_at.map(timestamp),
        "lastReason": usage.reason,
    })
}

fn line_of(usage: &KeyUsage) -> String {
    let KeyUsage { key, accepted, refused, limited, failed, field, reason, .. } = usage;
    let OwnedKey { organisation_name, name, hint, .. } = key;
    let field = field.as_ref().map(|field| format!(", most often for {field}")).unwrap_or_default();
    let last = match (usage.refused_at, reason) {
        (Some(at), Some(reason)) => format!("; last {reason} at {}", timestamp(at)),
        _ => String::new(),
    };
    format!(
        "{}  …{hint}  {name} ({organisation_name})  {accepted} accepted, {refused} refused{field}, {limited} beyond the rate, \
         {failed} failed{last}",
        key.key_id()
    )
}
