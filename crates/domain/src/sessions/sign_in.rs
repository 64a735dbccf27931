//! Signing in: the password, and the code where the member has a second factor.

use std::net::IpAddr;

use crate::audit::deed::{Action, Actor, Deed};
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

/// Who would sign in from where, as far as is known before the password is looked at. Most are nobody.
#[derive(Clone, Debug)]
pub struct Candidate {
    credentials: Option<Credentials>,
    network: Network,
}

/// What became of an attempt to sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignIn {
    /// Signed in under the token.
    SignedIn(Member),
    /// The sign-in waits under the token for the code of the second factor.
    CodeNeeded,
    /// The pair is wrong, whichever half of it. The member, if the password was: for [`note_failed_sign_in`].
    Wrong(Option<Member>),
    /// The password was not looked at, because another one from the same network, or for the same member, is in line.
    AlreadyInLine,
}

impl Candidate {
    /// Whether this is a member in a network that it has signed in from before.
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

/// Looks up who would sign in. Nobody does by a text that is no email address.
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

/// Signs a member in under a new token. An unknown address asks the same of every port as a wrong password, so that the
/// time it takes tells nobody whose address is known: the failure is recorded by [`note_failed_sign_in`], after the
/// answer.
pub async fn sign_in(
    sessions: &dyn SessionStore,
    hasher: &dyn PasswordHasher,
    candidate: Candidate,
    password: &PresentedPassword,
    token: &Token,
    mut deed: Deed,
) -> Result<SignIn, StoreError> {
    let waiter = candidate.waiter();
    let hash = candidate.credentials.as_ref().map(|credentials| credentials.password.clone());
    let is_right = match hasher.matches(waiter, password, hash).await {
        Err(HasherError::AlreadyInLine) => return Ok(SignIn::AlreadyInLine),
        compared => compared?,
    };
    let Some(Credentials { member, has_second_factor, .. }) = candidate.credentials else {
        return Ok(SignIn::Wrong(None));
    };
    if !is_right {
        return Ok(SignIn::Wrong(Some(member)));
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

/// Records that a wrong password was given for a member. To be called when the answer is on its way: before, it would
/// take longer for a member than for nobody.
pub async fn note_failed_sign_in(sessions: &dyn SessionStore, member: &Member, deed: &Deed) -> Result<(), StoreError> {
    let deed = Deed { actor: Actor::Stranger, ..deed.clone() };
    sessions.note_failure(member, Action::SignInFailed, &deed).await
}

/// Finishes a sign-in with what the member typed: the code of its app, or a recovery code. The session has a token of its
/// own.
pub async fn finish_sign_in(
    sessions: &dyn SessionStore,
    AwaitedMember { member, secret }: &AwaitedMember,
    waiting: &Token,
    code: &PresentedCode,
    session: &Token,
    mut deed: Deed,
) -> Result<CodeOutcome, StoreError> {
    let by_app = secret.step_of(code, deed.at).map(Proof::Step);
    let proof = by_app.unwrap_or_else(|| Proof::RecoveryCode(RecoveryCode::digest_of(code)));
    deed.actor = Actor::Member(member.id, member.name.to_string());
    let session = NewSession { token: session.digest(), member_id: member.id, started_at: deed.at };
    let finished = sessions.finish(&waiting.digest(), proof, &session, &deed).await?;
    if finished == CodeOutcome::WrongCode {
        deed.actor = Actor::Stranger;
        sessions.note_failure(member, Action::CodeFailed, &deed).await?;
    }
    Ok(finished)
}
