//! Stops of several keys of an organisation together.

use time::OffsetDateTime;

use crate::ids::{AuditEntryId, KeyId};

/// Keys that were stopped together and can be resumed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyStop {
    /// The id of the change.
    pub id: AuditEntryId,
    /// True if all keys were stopped, which an administrator resumes. False: they were selected.
    pub is_of_all: bool,
    /// Time at which they were paused.
    pub at: OffsetDateTime,
    /// The name of the member who stopped them; none: an operator did.
    pub by: Option<String>,
    /// Number of its keys that are still paused and not over.
    pub keys: usize,
}

/// A key that was stopped or resumed together with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoppedKey {
    /// Its id.
    pub id: KeyId,
    /// The name that its maker gave it.
    pub name: String,
    /// The last characters of the key.
    pub hint: String,
}
