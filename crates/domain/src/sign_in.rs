//! Signing in and out.

use time::OffsetDateTime;

use crate::audit::{Action, Actor, Deed};
use crate::member::{EmailAddress, Member};
use crate::member_store::{Credentials, MemberStore};
use crate::password_hasher::PasswordHasher;
use crate::second_factor::RecoveryCode;
use crate::session_store::{AwaitedMember, Finished, NewSession, Proof, SessionStore, SignedIn};
use crate::store_error::StoreError;
use crate::token::Token;

/// What became of an attempt to sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignIn {
    /// Signed in under the token.
    SignedIn(Member),
    /// The sign-in waits under the token for the code of the second factor.
    CodeNeeded,
    /// The pair is wrong, whichever half of it.
    Wrong,
}

/// Signs a member in under a new token. An unknown address takes as long as a wrong password.
pub async fn sign_in(
    members: &dyn MemberStore,
    sessions: &dyn SessionStore,
    hasher: &dyn PasswordHasher,
    (email, password): (&str, &str),
    token: &Token,
    mut deed: Deed,
) -> Result<SignIn, StoreError> {
    let credentials = match email.parse::<EmailAddress>() {
        Ok(email) => members.credentials(&email).await?,
        Err(_) => None,
    };
    let hash = credentials.as_ref().map(|credentials| credentials.password.clone());
    let is_right = hasher.matches(password, hash).await?;
    let Some(Credentials { member, has_second_factor, .. }) = credentials else {
        return Ok(SignIn::Wrong);
    };
    if !is_right {
        deed.actor = Actor::Stranger;
        sessions.note_failure(&member, Action::SignInFailed, &deed).await?;
        return Ok(SignIn::Wrong);
    }
    let session = NewSession { token: token.digest(), member_id: member.id, started_at: deed.at };
    if has_second_factor {
        sessions.await_code(&session).await?;
        return Ok(SignIn::CodeNeeded);
    }
    deed.actor = Actor::Member(member.id, member.name.to_string());
    sessions.start(&session, &deed).await?;
    Ok(SignIn::SignedIn(member))
}

/// Whose sign-in waits for its code under this token, if it is not over.
pub async fn awaited_member(
    sessions: &dyn SessionStore,
    waiting: &Token,
    now: OffsetDateTime,
) -> Result<Option<AwaitedMember>, StoreError> {
    sessions.awaited(&waiting.digest(), now).await
}

/// Finishes a sign-in with what the member typed: the code of its app, or a recovery code. The session has a token of its
/// own.
pub async fn finish_sign_in(
    sessions: &dyn SessionStore,
    AwaitedMember { member, secret }: &AwaitedMember,
    waiting: &Token,
    code: &str,
    session: &Token,
    mut deed: Deed,
) -> Result<Finished, StoreError> {
    let by_app = secret.step_of(code, deed.at).map(Proof::Step);
    let proof = by_app.unwrap_or_else(|| Proof::RecoveryCode(RecoveryCode::digest_of(code)));
    deed.actor = Actor::Member(member.id, member.name.to_string());
    let session = NewSession { token: session.digest(), member_id: member.id, started_at: deed.at };
    let finished = sessions.finish(&waiting.digest(), proof, &session, &deed).await?;
    if finished == Finished::WrongCode {
        deed.actor = Actor::Stranger;
        sessions.note_failure(member, Action::CodeFailed, &deed).await?;
    }
    Ok(finished)
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
