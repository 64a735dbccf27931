//! What an organisation does with its API keys, on the command line and on its dashboard alike.

use time::OffsetDateTime;

use crate::audit::context::AuditContext;
use crate::ids::{KeyId, OrganisationId};
use crate::key_note::KeyContact;
use crate::keys::allowed_networks::AllowedNetworks;
use crate::keys::api_key::{ApiKey, KeyFormat, KeySecret};
use crate::keys::manage_error::ManageKeysError;
use crate::keys::record::KeyRecord;
use crate::keys::search::KeyList;
use crate::keys::store::{KeyStore, NewKey, Replacement};
use crate::name::Name;

/// A request for a key, with the id and the random bits that the service gives it.
#[derive(Debug)]
pub struct KeyRequest {
    /// The organisation that will own the key.
    pub organisation_id: OrganisationId,
    /// The name by which people tell keys apart.
    pub name: Name,
    /// Time at which the key will expire; none: never.
    pub expires_at: Option<OffsetDateTime>,
    /// The networks from which it will be accepted. A replacement gets those of the replaced key.
    pub allowed_networks: AllowedNetworks,
    /// The company or person to call about it. A replacement gets that of the replaced key.
    pub contact: KeyContact,
    /// The key that it will replace.
    pub replaces: Option<Replacement>,
    /// The id the key will have: a request that is repeated with the same id makes one key.
    pub id: KeyId,
    /// The random bits that the key is made of.
    pub secret: KeySecret,
}

/// A key that was just made: the one time that the whole of it exists outside its owner's hands.
#[derive(Debug)]
pub struct IssuedKey {
    /// A UUID version 7, by which the key is managed.
    pub id: KeyId,
    /// The organisation that owns the key.
    pub organisation_id: OrganisationId,
    /// The name that was asked for.
    pub name: Name,
    /// Time at which the key expires; none: never.
    pub expires_at: Option<OffsetDateTime>,
    /// The whole key, in plain text.
    pub key: ApiKey,
}

/// Makes a key. Its digest and hint are stored, the key itself is not.
pub async fn create_key(
    keys: &dyn KeyStore,
    format: &KeyFormat,
    request: KeyRequest,
    audit: &AuditContext,
) -> Result<IssuedKey, ManageKeysError> {
    let KeyRequest { organisation_id, name, expires_at, allowed_networks, contact, replaces, id, secret } = request;
    let key = format.mint_at(&secret, &keys.place(organisation_id).await?);
    let record = NewKey {
        id,
        organisation_id,
        name: name.clone(),
        digest: key.digest(),
        hint: key.hint().to_owned(),
        created_at: audit.at,
        expires_at,
        allowed_networks,
        contact,
        replaces,
    };
    keys.add_key(&record, audit).await?;
    Ok(IssuedKey { id, organisation_id, name, expires_at, key })
}

/// The organisation's keys, the oldest first.
pub async fn list_keys(keys: &dyn KeyList, organisation_id: OrganisationId) -> Result<Vec<KeyRecord>, ManageKeysError> {
    keys.keys(organisation_id).await?.ok_or(ManageKeysError::NoSuchOrganisation(organisation_id))
}
