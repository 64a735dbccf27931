//! What is kept of a key, and what the key is worth.

use time::OffsetDateTime;

use crate::ids::KeyId;

/// A stored key, as its organisation sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// Its id.
    pub id: KeyId,
    /// Given by its maker.
    pub name: String,
    /// The last characters of the key.
    pub hint: String,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it last opened the door, give or take a minute.
    pub last_used_at: Option<OffsetDateTime>,
    /// From when on it is refused; none: never.
    pub expires_at: Option<OffsetDateTime>,
    /// The member who made it; none: an operator.
    pub created_by: Option<String>,
    /// When it was revoked.
    pub revoked_at: Option<OffsetDateTime>,
    /// The member who revoked it; none: an operator, or nobody yet.
    pub revoked_by: Option<String>,
    /// The key that it takes the place of.
    pub replaces: Option<KeyId>,
    /// When it was last seen on a connection that was not encrypted: it should be replaced.
    pub sent_in_clear_at: Option<OffsetDateTime>,
}
