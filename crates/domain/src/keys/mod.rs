//! Organisations and their API keys.

pub(crate) mod api_key;
pub(crate) mod manage;
pub(crate) mod organisation;
pub(crate) mod record;
pub(crate) mod standing;
pub(crate) mod store;

pub use api_key::{ApiKey, KeyDigest, KeyFormat, KeyPrefix, KeyPrefixError, KeySecret, MalformedKey};
pub use manage::{IssuedKey, KeyRequest, ManageKeysError, clear_sent_in_clear, create_key, list_keys, revoke_key};
pub use organisation::Organisation;
pub use record::{KeyRecord, KeyStatus};
pub use standing::{KeyHolder, KeyRefusal, KeyStanding};
pub use store::{
    ACTIVE_KEYS_MAX, ANSWERS_KEPT, AddKeyOutcome, AnswerCount, ClearMarkOutcome, KeyStore, NewKey, Replacement,
    RevokeOutcome,
};

#[cfg(feature = "mocks")]
pub use store::MockKeyStore;
