//! Signing in: the password, and the code where the member has a second factor.

use std::net::IpAddr;

use crate::audit::action::{Action, Actor, Origin};
use crate::email_address::EmailAddress;
use crate::members::hasher::{HasherError, PasswordHasher, Waiter};
use crate::members::member::Member;
use crate::members::presented::{PresentedCode, PresentedPassword};
use crate::members::second_factor::RecoveryCode;
use crate::members::store::{Credentials, MemberStore};
use crate::network::Network;
use crate::sessions::store::{AwaitedMember, CodeOutcome, NewSession, Proof, SessionStore};
use crate::sessions::token::Token;
use crate::store_error::StoreError;

/// Who is trying to sign in, and from which network, before the password is compared. Often there is no such member.
#[derive(Clone, Debug)]
pub struct Candidate {
    credentials: Option<Credentials>,
    network: Network,
}

/// What the right password leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignIn {
    /// The member is signed in under the token.
    Complete,
    /// The sign-in waits under the token for the code of the second factor.
    CodeNeeded,
}

/// Why a sign-in was refused.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// There is no such member, or the password is not this member's: for [`note_failed_sign_in`].
    #[error("the email address or the password is wrong")]
    WrongPair(Option<Member>),
    /// The password was not looked at, because another one from the same network, or for the same member, is in line.
    #[error("another password of the same waiter is in line")]
    AlreadyInLine,
    /// The store or the hasher could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a code did not finish a sign-in.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// The code was used before, or is neither the app's nor a recovery code.
    #[error("the code is wrong")]
    WrongCode,
    /// The sign-in took too long, or was finished before.
    #[error("the sign-in is over")]
    Over,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Candidate {
    /// Whether this is a member in a network they have signed in from before.
    #[must_use]
    pub fn is_familiar(&self) -> bool {
        self.credentials.as_ref().is_some_and(|credentials| credentials.is_familiar)
    }

    fn waiter(&self) -> Waiter {
        match &self.credentials {
            Some(Credentials { member, is_familiar: true, .. }) => Waiter::Member(member.id),
            _ => Waiter::Stranger(self.network),
        }
    }
}

/// Looks up who is trying to sign in. None: the text that was typed is not an email address, so it belongs to no member.
pub async fn find_candidate(
    members: &dyn MemberStore,
    email: Option<&EmailAddress>,
    address: Option<IpAddr>,
) -> Result<Candidate, StoreError> {
    let network = Network::of_neighbours(address);
    let credentials = match email {
        Some(email) => members.credentials(email, Some(network)).await?,
        None => None,
    };
    Ok(Candidate { credentials, network })
}

/// Signs a member in under a new token. An unknown address asks the same of every port as a wrong password does, so that
/// the time it takes does not reveal which addresses are known. That is why [`note_failed_sign_in`] records the failure
/// after the answer.
pub async fn sign_in(
    sessions: &dyn SessionStore,
    hasher: &dyn PasswordHasher,
    candidate: Candidate,
    password: &PresentedPassword,
    token: &Token,
    origin: Origin,
) -> Result<SignIn, SignInError> {
    let waiter = candidate.waiter();
    let hash = candidate.credentials.as_ref().map(|credentials| credentials.password.clone());
    let is_right = match hasher.matches(waiter, password, hash).await {
        Err(HasherError::AlreadyInLine) => return Err(SignInError::AlreadyInLine),
        compared => compared.map_err(StoreError::from)?,
    };
    let Some(Credentials { member, has_second_factor, .. }) = candidate.credentials else {
        return Err(SignInError::WrongPair(None));
    };
    if !is_right {
        return Err(SignInError::WrongPair(Some(member)));
    }
    let session =
        NewSession { token: token.digest(), member_id: member.id, started_at: origin.at, browser: origin.browser };
    if has_second_factor {
        sessions.await_code(&session).await?;
        return Ok(SignIn::CodeNeeded);
    }
    sessions.start(&session, &origin.by(member.actor())).await?;
    Ok(SignIn::Complete)
}

/// Records that a wrong password was given for a member. To be called once the answer has been sent: earlier, the answer
/// would take longer for a member than for an unknown address.
pub async fn note_failed_sign_in(
    sessions: &dyn SessionStore,
    member: &Member,
    origin: Origin,
) -> Result<(), StoreError> {
    sessions.note_failure(member, Action::SignInFailed, &origin.by(Actor::Stranger)).await
}

/// Finishes a sign-in with what the member typed: the code of its app, or a recovery code. The session has a token of its
/// own.
pub async fn finish_sign_in(
    sessions: &dyn SessionStore,
    AwaitedMember { member, secret, .. }: &AwaitedMember,
    waiting: &Token,
    code: &PresentedCode,
    session: &Token,
    origin: Origin,
) -> Result<(), CodeError> {
    let by_app = secret.as_ref().and_then(|secret| secret.step_of(code, origin.at)).map(Proof::Step);
    let proof = by_app.unwrap_or_else(|| Proof::RecoveryCode(RecoveryCode::digest_of(code)));
    let session =
        NewSession { token: session.digest(), member_id: member.id, started_at: origin.at, browser: origin.browser };
    match sessions.finish(&waiting.digest(), proof, &session, &origin.by(member.actor())).await? {
        CodeOutcome::SignedIn => Ok(()),
        CodeOutcome::WrongCode => {
            sessions.note_failure(member, Action::CodeFailed, &origin.by(Actor::Stranger)).await?;
            Err(CodeError::WrongCode)
        }
        CodeOutcome::Over => Err(CodeError::Over),
    }
}
