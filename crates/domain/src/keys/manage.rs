//! What an organisation does with its API keys, on the command line and on its dashboard alike.

use time::OffsetDateTime;

use crate::audit::context::AuditContext;
use crate::ids::{KeyId, OrganisationId};
use crate::key_note::KeyContact;
use crate::keys::allowed_networks::AllowedNetworks;
use crate::keys::allowed_networks_store::AllowedNetworksStore;
use crate::keys::api_key::{ApiKey, KeyFormat, KeySecret};
use crate::keys::description::{ChangeKeyOutcome, ClearMarkOutcome, KeyDescriptionStore};
use crate::keys::key_age::KeyAge;
use crate::keys::record::KeyRecord;
use crate::keys::search::KeyList;
use crate::keys::store::{ACTIVE_KEYS_MAX, AddKeyOutcome, KEYS_PER_DAY_MAX, KeyStore, NewKey, Replacement};
use crate::name::Name;
use crate::store_error::StoreError;

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

/// Reason why keys could not be managed.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum ManageKeysError {
    /// No organisation has this id.
    #[error("there is no organisation {0}")]
    NoSuchOrganisation(OrganisationId),
    /// The organisation is suspended.
    #[error("the organisation {0} is suspended, so it gets no keys")]
    OrganisationSuspended(OrganisationId),
    /// The organisation is closed.
    #[error("the organisation {0} is closed, so it gets no keys")]
    OrganisationClosed(OrganisationId),
    /// No key has this id.
    #[error("there is no key {0}")]
    NoSuchKey(KeyId),
    /// The key would work for longer than the organisation lets its keys work.
    #[error("keys of this organisation must expire within {0}")]
    TooLong(KeyAge),
    /// The request was sent before: its key was shown then, and cannot be shown again.
    #[error("the key was made already")]
    AlreadyMade,
    /// The key to be replaced is no longer active, or belongs to another organisation.
    #[error("there is no active key to replace")]
    NothingToReplace,
    /// The organisation has [`ACTIVE_KEYS_MAX`] active keys, which is the limit.
    #[error("the organisation has {ACTIVE_KEYS_MAX} active keys: revoke one first")]
    TooManyKeys,
    /// The members of the organisation made [`KEYS_PER_DAY_MAX`] keys within a day, which is the limit.
    #[error("{KEYS_PER_DAY_MAX} keys were made within a day: try again tomorrow")]
    TooManyToday,
    /// The key was revoked or has expired, so it cannot be paused or resumed.
    #[error("the key {0} was revoked or has expired")]
    KeyIsOver(KeyId),
    /// The member is not an administrator, or no longer.
    #[error("only administrators can do this")]
    NotAdministrator,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
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
    match keys.add_key(&record, audit).await? {
        AddKeyOutcome::Added => Ok(IssuedKey { id, organisation_id, name, expires_at, key }),
        AddKeyOutcome::AlreadyThere => Err(ManageKeysError::AlreadyMade),
        AddKeyOutcome::NoSuchOrganisation => Err(ManageKeysError::NoSuchOrganisation(organisation_id)),
        AddKeyOutcome::OrganisationSuspended => Err(ManageKeysError::OrganisationSuspended(organisation_id)),
        AddKeyOutcome::OrganisationClosed => Err(ManageKeysError::OrganisationClosed(organisation_id)),
        AddKeyOutcome::TooLong(age) => Err(ManageKeysError::TooLong(age)),
        AddKeyOutcome::NothingToReplace => Err(ManageKeysError::NothingToReplace),
        AddKeyOutcome::TooMany => Err(ManageKeysError::TooManyKeys),
        AddKeyOutcome::TooManyToday => Err(ManageKeysError::TooManyToday),
    }
}

/// The organisation's keys, the oldest first.
pub async fn list_keys(keys: &dyn KeyList, organisation_id: OrganisationId) -> Result<Vec<KeyRecord>, ManageKeysError> {
    keys.keys(organisation_id).await?.ok_or(ManageKeysError::NoSuchOrganisation(organisation_id))
}

/// Clears the mark that a key was sent in clear; on a key without one nothing is changed. Returns whether there was a
/// mark.
pub async fn clear_sent_in_clear(
    keys: &dyn KeyDescriptionStore,
    key: KeyId,
    audit: &AuditContext,
) -> Result<ClearMarkOutcome, ManageKeysError> {
    match keys.clear_sent_in_clear(key, audit).await? {
        ClearMarkOutcome::NotFound => Err(ManageKeysError::NoSuchKey(key)),
        outcome @ (ClearMarkOutcome::Cleared | ClearMarkOutcome::NotMarked) => Ok(outcome),
    }
}

/// Accepts a key only from these networks, at once. With an organisation given, only that organisation's keys can be
/// changed. Returns whether they were others before.
pub async fn allow_networks(
    keys: &dyn AllowedNetworksStore,
    key: KeyId,
    within: Option<OrganisationId>,
    networks: &AllowedNetworks,
    audit: &AuditContext,
) -> Result<bool, ManageKeysError> {
    match keys.set_allowed_networks(key, within, networks, audit).await? {
        ChangeKeyOutcome::Changed => Ok(true),
        ChangeKeyOutcome::Unchanged => Ok(false),
        ChangeKeyOutcome::Revoked => Err(ManageKeysError::KeyIsOver(key)),
        ChangeKeyOutcome::NotFound => Err(ManageKeysError::NoSuchKey(key)),
    }
}
