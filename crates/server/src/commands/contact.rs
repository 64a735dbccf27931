//! `intake key contact`: shows and sets whom to call about a key.

use intake_domain::{AuditContext, KeyContact, KeyDescriptionStore, KeyId, KeyText, ManageKeysError};
use intake_infra::PostgresKeyStore;
use serde_json::json;

use super::output::print_change;
use crate::settings::arguments::Output;

pub(super) async fn contact(
    keys: &PostgresKeyStore,
    key: KeyId,
    set: Option<&KeyContact>,
    audit: &AuditContext,
    output: &Output,
) -> anyhow::Result<()> {
    let (organisation, stored) = keys.find(key).await?.ok_or(ManageKeysError::NoSuchKey(key))?;
    if let Some(contact) = set {
        keys.describe(organisation, key, KeyText::Contact(contact.clone()), audit).await?;
    }
    let contact = set.map_or(stored.contact.as_str(), KeyContact::as_str);
    let shown = if contact.is_empty() { "none" } else { contact };
    let value = json!({ "id": key.to_string(), "contact": Some(contact).filter(|contact| !contact.is_empty()) });
    print_change(output, &value, &format!("Vendor contact of key {key}: {shown}"))
}
