//! `intake request`: says why a request was refused, by the id that its answer carried.

use anyhow::bail;
use intake_domain::timestamp;
use intake_infra::{Database, OwnedKey, RefusedRequest, refused_requests};
use serde_json::{Value, json};

use super::output::print_result;
use crate::settings::arguments::Output;

pub(super) async fn request(id: String, output: &Output, database: &Database) -> anyhow::Result<()> {
    let found = refused_requests(database, id.clone()).await?;
    if found.is_empty() {
        bail!(
            "no refused request with the id {id} is kept: of each key the last hundred are, for 30 days, without those \
             beyond its rate. The log of requests has all (INTAKE_LOG=info,intake::requests=info)"
        );
    }
    let lines: Vec<_> = found.iter().map(line_of).collect();
    print_result(output, &found.iter().map(value_of).collect(), &lines.join("\n"))
}

fn value_of(refused: &RefusedRequest) -> Value {
    json!({
        "at": timestamp(refused.at),
        "status": refused.status,
        "reason": refused.reason,
        "fields": refused.fields,
        "isSimulated": refused.is_simulated,
        "address": refused.address,
        "instance": refused.instance,
        "organisationId": refused.key.organisation_id().to_string(),
        "organisationName": refused.key.organisation_name,
        "keyId": refused.key.key_id().to_string(),
        "keyName": refused.key.name,
        "hint": refused.key.hint,
    })
}

fn line_of(refused: &RefusedRequest) -> String {
    let RefusedRequest { key, status, reason, fields, .. } = refused;
    let OwnedKey { organisation_name, name, hint, .. } = key;
    let fields = if fields.is_empty() { String::new() } else { format!(" ({})", fields.join(", ")) };
    let ordered = if refused.is_simulated { ", as the request had ordered" } else { "" };
    let address = refused.address.as_deref().unwrap_or("an unknown address");
    let instance = refused.instance.as_deref().unwrap_or("an unknown instance");
    format!(
        "{}  {status} {reason}{fields}{ordered}, from {address}, by {instance}\n  key {} (…{hint}) {name}, organisation {} {organisation_name}",
        timestamp(refused.at),
        key.key_id(),
        key.organisation_id()
    )
}
