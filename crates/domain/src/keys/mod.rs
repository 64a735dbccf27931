//! Organisations and their API keys.

pub(crate) mod activity;
pub(crate) mod allowed_networks;
pub(crate) mod answer;
pub(crate) mod api_key;
pub(crate) mod check;
pub(crate) mod client;
pub(crate) mod description;
pub(crate) mod expiring;
pub(crate) mod key_age;
pub(crate) mod manage;
pub(crate) mod manage_error;
pub(crate) mod organisation;
pub(crate) mod pause;
pub(crate) mod record;
pub(crate) mod refusal;
pub(crate) mod replace;
pub(crate) mod revoke;
pub(crate) mod search;
pub(crate) mod state_store;
pub(crate) mod stop;
pub(crate) mod store;
pub(crate) mod unusual;

pub use activity::KeyActivity;
pub use allowed_networks::{AllowedNetworks, AllowedNetworksError};
pub use answer::{ANSWERS_KEPT, AnswerCode, AnswerCount, KeyAnswer, REPLAYED, first_kept_day};
pub use api_key::{ApiKey, KeyDigest, KeyFormat, KeyPlace, KeyPrefix, KeyPrefixError, KeySecret, MalformedKey};
pub use check::{Caller, CheckedFor, KeyCheck, KeyHolder, KeyRefusal};
pub use client::{ClientProgram, KeyClient};
pub use description::{KeyDescriptionStore, KeyText};
pub use expiring::{EXPIRY_ANNOUNCED_BEFORE, ExpiringKey, ExpiringKeyStore};
pub use key_age::{KeyAge, days_in_words};
pub use manage::{IssuedKey, KeyRequest, create_key, list_keys};
pub use manage_error::{ACTIVE_KEYS_MAX, KEYS_PER_DAY_MAX, ManageKeysError};
pub use organisation::{Organisation, OrganisationRecord};
pub use pause::{PauseOutcome, ResumeOutcome};
pub use record::{INSTALLED_WITHIN, KeyRecord, KeyStatus, KeySuccessor, OnlyRefused};
pub use refusal::{REFUSALS_KEPT, Refusal, RefusalReason};
pub use replace::replace_leaked_key;
pub use revoke::RevokeOutcome;
pub use search::{ENDED_LATELY, EXPIRES_SOON, KEYS_PER_PAGE, KeyList, KeyOrder, KeyPage, KeyScope, KeySearch};
pub use state_store::KeyStateStore;
pub use stop::{KeyStop, StoppedKey};
pub use store::{KeyStore, NewKey, Replacement};
pub use unusual::{
    BUSY_DAYS, BUSY_REQUESTS, ONLY_REFUSED_MIN, QUIET_TIMES, REFUSALS_ANNOUNCED_EVERY, REFUSED_MIN, REFUSED_TIMES,
    USUAL_DAYS, UnusualKey, UnusualKeyStore, UnusualUse,
};

#[cfg(feature = "mocks")]
pub use {
    activity::MockKeyActivity, description::MockKeyDescriptionStore, expiring::MockExpiringKeyStore,
    search::MockKeyList, state_store::MockKeyStateStore, store::MockKeyStore, unusual::MockUnusualKeyStore,
};
