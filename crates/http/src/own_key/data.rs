//! What a key learns about itself, as JSON.

use std::borrow::Cow;

use intake_domain::{
    AllowedNetworks, CreatedInPart, DayPart, DoubtCount, Environment, OwnKey, Refusal, RefusalReason, day, timestamp,
};
use serde::Serialize;

use crate::patients::rate_limit::Rate;

/// A key.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeyData<'a> {
    id: String,
    name: &'a str,
    hint: &'a str,
    organisation_id: String,
    organisation_name: &'a str,
    environment: &'static str,
    created_at: String,
    expires_at: Option<String>,
    allowed_networks: Vec<String>,
    rate_limit: Option<Rate>,
}

/// Patients that a key created in a part of a day.
#[derive(Serialize)]
pub(super) struct DayData {
    date: String,
    created: u64,
    erased: u64,
    digest: String,
}

/// A request that was refused.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RefusalData<'a> {
    at: String,
    request_id: &'a str,
    status: u16,
    reason: Option<&'static str>,
    fields: &'a [Cow<'static, str>],
    simulated: bool,
}

impl<'a> KeyData<'a> {
    /// The key of a service in this environment, with the rate of every key.
    pub(super) fn new(key: &'a OwnKey, environment: Environment, rate: Option<Rate>) -> Self {
        Self {
            id: key.id.to_string(),
            name: &key.name,
            hint: &key.hint,
            organisation_id: key.organisation_id.to_string(),
            organisation_name: &key.organisation_name,
            environment: environment.as_str(),
            created_at: timestamp(key.created_at),
            expires_at: key.expires_at.map(timestamp),
            allowed_networks: networks(&key.allowed_networks),
            rate_limit: rate,
        }
    }
}

impl DayData {
    /// The patients that were created in this part.
    pub(super) fn new(part: DayPart, created: &CreatedInPart) -> Self {
        let CreatedInPart { existing, erased, digest } = created;
        let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { date: day(part.day()), created: *existing, erased: *erased, digest }
    }
}

/// Patients with one doubt, whose name in this interface is a mark, that a key created on one day.
#[derive(Serialize)]
pub(super) struct MarkData {
    date: String,
    mark: &'static str,
    count: u64,
}

impl From<&DoubtCount> for MarkData {
    fn from(counted: &DoubtCount) -> Self {
        Self { date: day(counted.day), mark: counted.doubt.name(), count: counted.count }
    }
}

/// Each network as members see it; none for any.
fn networks(networks: &AllowedNetworks) -> Vec<String> {
    if networks.are_any() { Vec::new() } else { networks.to_string().split(", ").map(str::to_owned).collect() }
}

impl<'a> From<&'a Refusal> for RefusalData<'a> {
    fn from(refusal: &'a Refusal) -> Self {
        Self {
            at: timestamp(refusal.at),
            request_id: &refusal.request_id,
            status: refusal.code.0,
            reason: refusal.reason.map(RefusalReason::as_str),
            fields: &refusal.fields,
            simulated: refusal.is_simulated,
        }
    }
}
