//! The port to what is noted of the use of API keys.

use std::collections::HashMap;

use async_trait::async_trait;
use time::{Date, OffsetDateTime};

use crate::ids::{KeyId, OrganisationId};
use crate::keys::answer::{AnswerCount, KeyAnswer};
use crate::keys::api_key::KeyDigest;
use crate::keys::check::KeyHolder;
use crate::keys::refusal::Refusal;
use crate::store_error::StoreError;

/// Records how requests with a key were answered and refused.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait KeyActivity: Send + Sync {
    /// Notes that this key was seen in a request that was not encrypted, which was refused: counted with the other
    /// answers and refusals. Returns at once; it is stored a little later.
    fn note_sent_in_clear(&self, key: &KeyDigest, refusal: Refusal);

    /// Notes that a request with this key was refused. Returns at once; the last [`REFUSALS_KEPT`] of each key are
    /// stored a little later.
    ///
    /// [`REFUSALS_KEPT`]: crate::REFUSALS_KEPT
    fn note_refusal(&self, key: &KeyDigest, refusal: Refusal);

    /// Counts an answer to a request with this key by its code and the fields that it named, and remembers its client.
    /// Returns at once; both are stored a little later.
    fn note_answer(&self, key: &KeyDigest, answer: KeyAnswer, fields: &[&'static str]);

    /// The holder of a key, if it is known without a look into the store.
    fn known_holder(&self, key: &KeyDigest) -> Option<KeyHolder>;

    /// Time at which a key expires, as far as it is known without a look into the store: to within about a minute.
    fn known_end(&self, key: &KeyDigest) -> Option<OffsetDateTime>;

    /// Returns how a key's requests were answered since that day of the organisation, the oldest day first. Empty for
    /// another organisation's key.
    async fn answers(
        &self,
        organisation: OrganisationId,
        key: KeyId,
        since: Date,
    ) -> Result<Vec<AnswerCount>, StoreError>;

    /// Returns how these keys' requests were answered since that day, by key and in no order. Of the answers that named
    /// something, those that named one of `named`. Another organisation's keys have none.
    async fn answers_by_key(
        &self,
        organisation: OrganisationId,
        keys: &[KeyId],
        named: &[&'static str],
        since: Date,
    ) -> Result<HashMap<KeyId, Vec<AnswerCount>>, StoreError>;

    /// The last refusals of a key's requests, the newest first. Empty for another organisation's key.
    async fn refusals(&self, organisation: OrganisationId, key: KeyId) -> Result<Vec<Refusal>, StoreError>;
}
