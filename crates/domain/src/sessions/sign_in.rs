//! Signing in: the password, and the code where the member has a second factor.

use std::net::IpAddr;

use crate::accounts::evidence::{FirstStep, Proof};
use crate::accounts::hasher::{HasherError, PasswordHasher, Requester};
use crate::accounts::member::Account;
use crate::accounts::member_store::{Credentials, MemberStore};
use crate::accounts::presented::{PresentedCode, PresentedPassword};
use crate::accounts::session_store::{AwaitedMember, CodeError, NewSession, SessionStore, SignIn};
use crate::audit::action::{Action, Actor};
use crate::audit::context::Origin;
use crate::email_address::EmailAddress;
use crate::network::Network;
use crate::store_error::StoreError;
use crate::token::Token;

/// Who is trying to sign in, and from which network, before the password is compared. Often there is no such member.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The accounts with the address.
    credentials: Vec<Credentials>,
    site: Network,
}

/// Reason why a sign-in was refused.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum SignInError {
    /// There is no such member, or the password is none of these members': for [`note_failed_sign_in`].
    #[error("the email address or the password is wrong")]
    WrongPair(Vec<Account>),
    /// The password was neither hashed nor compared.
    #[error(transparent)]
    Hasher(#[from] HasherError),
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Candidate {
    /// Returns whether this is a member in a network they have signed in from before.
    #[must_use]
    pub fn is_familiar(&self) -> bool {
        self.familiar().is_some()
    }

    fn requester(&self) -> Requester {
        self.familiar().map_or(Requester::Stranger(self.site), |account| Requester::Member(account.id))
    }

    fn familiar(&self) -> Option<&Account> {
        self.credentials.iter().find(|credentials| credentials.is_familiar).map(|credentials| &credentials.account)
    }
}

/// Looks up who is trying to sign in. None: the text that was typed is not an email address, so it belongs to no
/// member.
pub async fn find_candidate(
    members: &dyn MemberStore,
    email: Option<&EmailAddress>,
    address: Option<IpAddr>,
) -> Result<Candidate, StoreError> {
    let network = Network::of_neighbours(address);
    let credentials = match email {
        Some(email) => members.credentials(email, Some(network)).await?,
        None => Vec::new(),
    };
    Ok(Candidate { credentials, site: Network::of_site(address) })
}

/// Signs a member in under a new token. An unknown address asks the same of every port as a wrong password does, so
/// that the time it takes does not reveal which addresses are known. That is why [`note_failed_sign_in`] records the
/// failure after the answer.
pub async fn sign_in(
    sessions: &dyn SessionStore,
    hasher: &dyn PasswordHasher,
    candidate: Candidate,
    password: &PresentedPassword,
    token: &Token,
    origin: Origin,
) -> Result<SignIn, SignInError> {
    let requester = candidate.requester();
    let Candidate { credentials, .. } = candidate;
    let hashes: Vec<_> = credentials.iter().filter_map(|one| one.password.clone()).collect();
    let Some(right) = hasher.find(requester, password, &hashes).await? else {
        return Err(SignInError::WrongPair(credentials.into_iter().map(|one| one.account).collect()));
    };
    let found = credentials.into_iter().find(|one| one.password.as_ref() == Some(&right));
    let Some(Credentials { account, .. }) = found else { return Err(SignInError::WrongPair(Vec::new())) };
    let session = NewSession::new(account.id, token, &origin);
    let begun = sessions.begin(&session, &FirstStep::Password(right), &origin.by(account.actor())).await?;
    begun.ok_or_else(|| SignInError::WrongPair(vec![account]))
}

/// Records that a wrong password was given for these accounts, in each of their organisations. To be called once the
/// answer has been sent: earlier, the answer would take longer for a member than for an unknown address.
pub async fn note_failed_sign_in(
    sessions: &dyn SessionStore,
    accounts: &[Account],
    origin: Origin,
) -> Result<(), StoreError> {
    for account in accounts {
        sessions.note_failure(account, Action::SignInFailed, &origin.by(Actor::Stranger)).await?;
    }
    Ok(())
}

/// Finishes a sign-in with what the member typed: the code of its app, or a recovery code. The session has a token of
/// its own.
pub async fn finish_sign_in(
    sessions: &dyn SessionStore,
    AwaitedMember { account, secret, .. }: &AwaitedMember,
    waiting: &Token,
    code: &PresentedCode,
    session: &Token,
    origin: Origin,
) -> Result<(), CodeError> {
    let proof = Proof::of_code(secret.as_ref(), code, origin.at);
    let session = NewSession::new(account.id, session, &origin);
    let finished = sessions.finish(&waiting.digest(), proof, &session, &origin.by(account.actor())).await;
    if matches!(finished, Err(CodeError::WrongCode)) {
        sessions.note_failure(account, Action::CodeFailed, &origin.by(Actor::Stranger)).await?;
    }
    finished
}
