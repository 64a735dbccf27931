//! Who is signed in, and how members sign in.

pub(crate) mod end_sessions;
pub(crate) mod evidence;
pub(crate) mod holder;
pub(crate) mod identity_provider;
pub(crate) mod passwords;
pub(crate) mod sign_in;
pub(crate) mod sign_in_by_provider;
pub(crate) mod store;
pub(crate) mod subject;

pub use end_sessions::{end_other_sessions, end_session, end_sessions_of_colleague};
pub use evidence::{Evidence, FirstStep, Proof};
pub use holder::{Holder, SignedIn};
pub use identity_provider::{Identity, IdentityProvider, ProviderError, ProviderRound};
pub use passwords::Passwords;
pub use sign_in::{
    Candidate, CodeError, SignIn, SignInError, find_candidate, finish_sign_in, note_failed_sign_in, sign_in,
};
pub use sign_in_by_provider::{
    ProviderJoinError, ProviderSignIn, confirm_by_provider, join_by_provider, sign_in_by_provider,
};
pub use store::{
    AwaitedMember, BeginOutcome, CODE_LIMIT, ChooseOutcome, CodeOutcome, ConfirmOutcome, EndOutcome, Factors,
    NewSession, SESSION_IDLE_LIMIT, SESSION_LIMIT, SESSIONS_MAX, SessionRecord, SessionStore, Visit, WRONG_CODES_MAX,
};

pub use subject::Subject;

#[cfg(feature = "mocks")]
pub use {identity_provider::MockIdentityProvider, store::MockSessionStore};
