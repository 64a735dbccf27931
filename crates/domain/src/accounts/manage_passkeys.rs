//! How members make and remove passkeys, and sign in by them: as the second step after the password, or as the only
//! step.

use crate::accounts::confirmation::ConfirmedMember;
use crate::accounts::passkey::{Challenge, PasskeyRegistration, RelyingParty};
use crate::accounts::passkey_store::{AddPasskeyOutcome, NewPasskey, PasskeyStore, RemovePasskeyOutcome};
use crate::audit::context::AuditContext;
use crate::name::{Name, NameError};
use crate::store_error::StoreError;
use crate::token::{Token, TokenDigest};

/// Reason why a passkey was not added.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum AddPasskeyError {
    /// The text cannot be a name.
    #[error("the name is refused")]
    Name(#[source] NameError),
    /// The browser sent no new passkey of this site.
    #[error("the passkey is refused")]
    Refused,
    /// The member has as many as anybody may have.
    #[error("the member has too many passkeys")]
    TooMany,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

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
    match passkeys.add(member.member(), &passkey, &member.confirm(audit)).await? {
        AddPasskeyOutcome::Added => Ok(()),
        AddPasskeyOutcome::AlreadyThere => Err(AddPasskeyError::Refused),
        AddPasskeyOutcome::TooMany => Err(AddPasskeyError::TooMany),
    }
}

/// Removes one of a member's passkeys.
pub async fn remove_passkey(
    passkeys: &dyn PasskeyStore,
    member: ConfirmedMember<'_>,
    id: &TokenDigest,
    audit: &AuditContext,
) -> Result<RemovePasskeyOutcome, StoreError> {
    passkeys.remove(member.member(), id, &member.confirm(audit)).await
}
