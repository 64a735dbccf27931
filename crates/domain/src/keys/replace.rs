//! Replacing a key that someone else may have.

use crate::audit::context::AuditContext;
use crate::keys::api_key::KeyFormat;
use crate::keys::manage::{IssuedKey, KeyRequest, create_key};
use crate::keys::manage_error::ManageKeysError;
use crate::keys::state_store::KeyStateStore;
use crate::keys::store::KeyStore;

/// Makes a key in the place of one that someone else may have. The old key ends with the making, and is then revoked: a
/// restored backup brings back an end, but not a revocation. A request that is repeated revokes it, too.
pub async fn replace_leaked_key(
    keys: &dyn KeyStore,
    states: &dyn KeyStateStore,
    format: &KeyFormat,
    request: KeyRequest,
    audit: &AuditContext,
    revocation: &AuditContext,
) -> Result<IssuedKey, ManageKeysError> {
    let (organisation, replaced) = (request.organisation_id, request.replaces.map(|replacement| replacement.key));
    let made = create_key(keys, format, request, audit).await;
    if let (Some(old), Ok(_) | Err(ManageKeysError::AlreadyMade)) = (replaced, &made) {
        states.revoke(old, Some(organisation), revocation).await?;
    }
    made
}
