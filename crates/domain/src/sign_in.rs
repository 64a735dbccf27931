//! Signing in and out.

use time::OffsetDateTime;

use crate::audit::{Actor, Deed};
use crate::member::{EmailAddress, Member};
use crate::member_store::MemberStore;
use crate::password_hasher::PasswordHasher;
use crate::session_store::{NewSession, SessionStore, SignedIn};
use crate::store_error::StoreError;
use crate::token::Token;

/// Signs a member in under a new token. None: the pair is wrong, whichever half of it. An unknown address takes as long as
/// a wrong password.
pub async fn sign_in(
    members: &dyn MemberStore,
    sessions: &dyn SessionStore,
    hasher: &dyn PasswordHasher,
    (email, password): (&str, &str),
    token: &Token,
    mut deed: Deed,
) -> Result<Option<Member>, StoreError> {
    let credentials = match email.parse::<EmailAddress>() {
        Ok(email) => members.credentials(&email).await?,
        Err(_) => None,
    };
    let hash = credentials.as_ref().map(|credentials| credentials.password.clone());
    let is_right = hasher.matches(password, hash).await?;
    let Some(member) = credentials.map(|credentials| credentials.member) else {
        return Ok(None);
    };
    if !is_right {
        deed.actor = Actor::Stranger;
        sessions.note_failure(&member, &deed).await?;
        return Ok(None);
    }
    deed.actor = Actor::Member(member.id, member.name.to_string());
    let session = NewSession { token: token.digest(), member_id: member.id, started_at: deed.at };
    sessions.start(&session, &deed).await?;
    Ok(Some(member))
}

/// Who holds this session, if it is not over.
pub async fn signed_in(
    sessions: &dyn SessionStore,
    token: &Token,
    now: OffsetDateTime,
) -> Result<Option<SignedIn>, StoreError> {
    sessions.holder(&token.digest(), now).await
}

/// Ends one session.
pub async fn sign_out(sessions: &dyn SessionStore, token: &Token, deed: &Deed) -> Result<(), StoreError> {
    sessions.end(&token.digest(), deed).await
}

/// Ends every session of a member.
pub async fn sign_out_everywhere(sessions: &dyn SessionStore, member: &Member, deed: &Deed) -> Result<(), StoreError> {
    sessions.end_all(member, deed).await
}
