//! How members make and remove passkeys, and sign in by them: as the second step after the password, or as the only
//! step.

use time::OffsetDateTime;

use crate::audit::context::{AuditContext, Origin};
use crate::members::confirmation::ConfirmedMember;
use crate::members::passkey::{Challenge, PasskeyAssertion, PasskeyRegistration, RelyingParty, Signatures};
use crate::members::passkey_store::{AddPasskeyOutcome, NewPasskey, PasskeyStore, RemovePasskeyOutcome};
use crate::name::{Name, NameError};
use crate::sessions::evidence::Proof;
use crate::sessions::sign_in::CodeError;
use crate::sessions::store::{AwaitedMember, CodeOutcome, NewSession, SessionStore};
use crate::store_error::StoreError;
use crate::token::{Token, TokenDigest};

/// Reason why a passkey was not added.
#[derive(Debug, thiserror::Error)]
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

/// Keeps the challenge of a browser that wants to sign in by a passkey alone.
pub async fn begin_passkey_sign_in(
    passkeys: &dyn PasskeyStore,
    challenge: &Token,
    at: OffsetDateTime,
) -> Result<(), StoreError> {
    passkeys.begin(&challenge.digest(), at).await
}

/// Signs in the holder of the passkey: the device has verified its user, so it is two factors in one step. The
/// challenge is used up.
pub async fn sign_in_by_passkey(
    passkeys: &dyn PasskeyStore,
    signatures: &dyn Signatures,
    site: &RelyingParty,
    challenge: &Token,
    assertion: &PasskeyAssertion,
    session: &Token,
    origin: Origin,
) -> Result<(), CodeError> {
    let id = assertion.passkey();
    let holder = passkeys.holder(&id).await?.ok_or(CodeError::WrongCode)?;
    if !assertion.is_signed(site, &Challenge::of(challenge), &holder.key, signatures) {
        return Err(CodeError::WrongCode);
    }
    let member_id = holder.account.id;
    let session = NewSession::new(member_id, session, &origin);
    let audit = origin.by(holder.account.actor());
    outcome(passkeys.sign_in(&challenge.digest(), &id, &session, &audit).await?)
}

/// Finishes a sign-in, after the password, with one of the member's passkeys.
pub async fn finish_sign_in_by_passkey(
    (passkeys, sessions, signatures): (&dyn PasskeyStore, &dyn SessionStore, &dyn Signatures),
    site: &RelyingParty,
    AwaitedMember { account, .. }: &AwaitedMember,
    waiting: &Token,
    assertion: &PasskeyAssertion,
    session: &Token,
    origin: Origin,
) -> Result<(), CodeError> {
    let id = assertion.passkey();
    let holder = passkeys.holder(&id).await?.filter(|holder| holder.account.id == account.id);
    let holder = holder.ok_or(CodeError::WrongCode)?;
    if !assertion.is_signed(site, &Challenge::of(waiting), &holder.key, signatures) {
        return Err(CodeError::WrongCode);
    }
    let session = NewSession::new(account.id, session, &origin);
    let audit = origin.by(account.actor());
    outcome(sessions.finish(&waiting.digest(), Proof::Passkey(id), &session, &audit).await?)
}

fn outcome(outcome: CodeOutcome) -> Result<(), CodeError> {
    match outcome {
        CodeOutcome::SignedIn => Ok(()),
        CodeOutcome::WrongCode => Err(CodeError::WrongCode),
        CodeOutcome::Locked => Err(CodeError::Locked),
        CodeOutcome::Over => Err(CodeError::Over),
    }
}
