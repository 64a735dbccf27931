//! Signing in and out.

pub(crate) mod end_sessions;
pub(crate) mod passwords;
pub(crate) mod sign_in;
pub(crate) mod sign_in_by_passkey;
pub(crate) mod sign_in_by_provider;

pub use end_sessions::{end_other_sessions, end_session, end_sessions_of_colleague};
pub use passwords::Passwords;
pub use sign_in::{Candidate, SignInError, find_candidate, finish_sign_in, note_failed_sign_in, sign_in};
pub use sign_in_by_passkey::{begin_passkey_sign_in, finish_sign_in_by_passkey, sign_in_by_passkey};
pub use sign_in_by_provider::{ProviderSignIn, confirm_by_provider, sign_in_by_provider};
