//! Signing in with a passkey: alone, or after the password.

use time::OffsetDateTime;

use crate::accounts::evidence::Proof;
use crate::accounts::passkey::{Challenge, PasskeyAssertion, RelyingParty, Signatures};
use crate::accounts::passkey_store::PasskeyStore;
use crate::accounts::session_store::{AwaitedMember, CodeError, NewSession, SessionStore};
use crate::audit::context::Origin;
use crate::store_error::StoreError;
use crate::token::Token;

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
    passkeys.sign_in(&challenge.digest(), &id, &session, &audit).await
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
    sessions.finish(&waiting.digest(), Proof::Passkey(id), &session, &audit).await
}
