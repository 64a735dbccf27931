//! How members make and remove passkeys, and sign in by them: as the second step after the password, or as the only
//! step.

use crate::accounts::confirmation::ConfirmedMember;
use crate::accounts::passkey::{Challenge, PasskeyRegistration, RelyingParty};
use crate::accounts::passkey_store::{AddPasskeyError, NewPasskey, PasskeyStore};
use crate::audit::context::AuditContext;
use crate::name::Name;
use crate::store_error::StoreError;
use crate::token::{Token, TokenDigest};

/// Adds a passkey to those of a member. The challenge is that of the session in which it was made.
pub async fn add_passkey(
    passkeys: &dyn PasskeyStore,
    site: &RelyingParty,
    member: ConfirmedMember<'_>,
    name: &str,
    session: &Token,
    registration: &PasskeyRegistration,
    audit: &AuditContext,
) -> Result<(), AddPasskeyError> {
    let name = Name::new(name).map_err(AddPasskeyError::Name)?;
    let verified = registration.verified(site, &Challenge::of(session)).ok_or(AddPasskeyError::Refused)?;
    let passkey = NewPasskey {
        id: verified.0,
        credential: registration.credential.clone(),
        public_key: registration.public_key.clone(),
        name,
    };
    passkeys.add(member.member(), &passkey, &member.confirm(audit)).await
}

/// Removes one of a member's passkeys. Returns false if the member has no such passkey.
pub async fn remove_passkey(
    passkeys: &dyn PasskeyStore,
    member: ConfirmedMember<'_>,
    id: &TokenDigest,
    audit: &AuditContext,
) -> Result<bool, StoreError> {
    passkeys.remove(member.member(), id, &member.confirm(audit)).await
}
