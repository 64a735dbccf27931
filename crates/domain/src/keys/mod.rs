//! Organisations and their API keys.

pub(crate) mod api_key;
pub(crate) mod expiring;
pub(crate) mod manage;
pub(crate) mod note;
pub(crate) mod organisation;
pub(crate) mod record;
pub(crate) mod refusal;
pub(crate) mod standing;
pub(crate) mod store;

pub use api_key::{ApiKey, KeyDigest, KeyFormat, KeyPrefix, KeyPrefixError, KeySecret, MalformedKey};
pub use expiring::{EXPIRY_TOLD_BEFORE, ExpiringKey};
pub use manage::{IssuedKey, KeyRequest, ManageKeysError, clear_sent_in_clear, create_key, list_keys, revoke_key};
pub use note::{KeyNote, KeyNoteError};
pub use organisation::Organisation;
pub use record::{KeyRecord, KeyStatus};
pub use refusal::{REFUSALS_KEPT, Refusal, RefusalReason};
pub use standing::{KeyHolder, KeyRefusal, KeyStanding};
pub use store::{
    ACTIVE_KEYS_MAX, ANSWERS_KEPT, AddKeyOutcome, AnswerCount, ChangeKeyOutcome, ClearMarkOutcome, KeyStore, NewKey,
    Replacement, RevokeOutcome,
};

#[cfg(feature = "mocks")]
pub use store::MockKeyStore;
