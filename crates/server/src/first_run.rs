//! What a newcomer finds in an embedded database: a clinic, and a key to try the service with.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use intake_domain::{
    KeyFormat, KeyId, KeyRequest, KeyStanding, KeyStore, Name, OrganisationId, create_key, create_organisation,
    list_organisations,
};

use crate::edge;
use crate::private_file;

const CLINIC: &str = "Demo Clinic";
const KEY: &str = "Demo key";

/// Where the demo key is kept.
pub(crate) fn key_file(data_dir: &Path) -> PathBuf {
    data_dir.join("demo-key")
}

/// Makes the clinic and its key unless they are there. A key that was lost, revoked or has ended is replaced.
pub(crate) async fn ensure_demo(keys: &dyn KeyStore, format: &KeyFormat, data_dir: &Path) -> anyhow::Result<()> {
    let file = key_file(data_dir);
    if let Ok(text) = fs::read_to_string(&file)
        && let Ok(key) = format.parse(text.trim())
        && let KeyStanding::Active(_) = keys.standing(&key.digest()).await?
    {
        return Ok(());
    }
    let now = edge::now();
    let known = list_organisations(keys).await?.into_iter().find(|(_, name)| name == CLINIC);
    let organisation_id = match known {
        Some((id, _)) => id,
        None => create_organisation(keys, OrganisationId::new(now, edge::random()?), Name::new(CLINIC)?).await?.id,
    };
    let request = KeyRequest {
        organisation_id,
        name: Name::new(KEY)?,
        expires_at: None,
        id: KeyId::new(now, edge::random()?),
        now,
        random: edge::random()?,
    };
    let made = create_key(keys, format, request).await?;
    private_file::write(&file, made.key.expose()).with_context(|| format!("{} cannot be written", file.display()))
}
