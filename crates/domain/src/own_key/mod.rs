//! What a key may ask about itself: what it is, which of its requests were refused, and how many patients it created.
//! Nothing of a patient is among it but the ids that the key's holder has.

pub(crate) mod ask;
pub(crate) mod day;
pub(crate) mod store;

pub use ask::{AskKeyError, assess_quality, count_created, describe_key, list_refusals};
pub use day::{CreatedInPart, DayPart};
pub use store::{OwnKey, OwnKeyStore};

#[cfg(feature = "mocks")]
pub use store::MockOwnKeyStore;
