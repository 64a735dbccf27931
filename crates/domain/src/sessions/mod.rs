//! Who is signed in, and how members sign in.

pub(crate) mod holder;
pub(crate) mod sign_in;
pub(crate) mod store;

pub use holder::{Holder, SignedIn};
pub use sign_in::{
    Candidate, CodeError, SignIn, SignInError, find_candidate, finish_sign_in, note_failed_sign_in, sign_in,
};
pub use store::{
    AwaitedMember, BeginOutcome, CODE_LIMIT, ChooseOutcome, CodeOutcome, ConfirmOutcome, EndOutcome, Evidence, Factors,
    NewSession, Proof, SESSION_IDLE_LIMIT, SESSION_LIMIT, SESSIONS_MAX, SessionRecord, SessionStore, Visit,
    WRONG_CODES_MAX,
};

#[cfg(feature = "mocks")]
pub use store::MockSessionStore;
