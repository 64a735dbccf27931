//! The progress of a reader of the feed: a mark, which is a row in the database, and the token that names the mark.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::ids::{KeyId, OrganisationId};

/// The organisations whose patients a feed contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedScope {
    /// The organisation.
    pub organisation_id: OrganisationId,
    /// Given: only the patients that this API key created.
    pub key_id: Option<KeyId>,
}

/// Names a mark. It holds nothing by itself: where its mark is not there, the history that it saw is not there either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedToken(Uuid);

impl FeedToken {
    /// The UUID itself.
    #[must_use]
    pub fn as_uuid(&self) -> &Uuid {
        &self.0
    }
}

impl From<Uuid> for FeedToken {
    fn from(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

impl FromStr for FeedToken {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for FeedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Position of a reader: the transactions before `next`, except those that were running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its name. None: the beginning, before which there is nothing.
    pub token: Option<FeedToken>,
    /// The first transaction that it did not see.
    pub next: i64,
    /// Earlier transactions that it did not see, because they had not ended.
    pub running: Vec<i64>,
}

/// Changes that are exported in one go: whatever the later mark sees and the earlier one does not.
#[derive(Clone, Debug)]
pub struct Span {
    /// Position of the reader before.
    pub since: Mark,
    /// Position of the reader afterwards.
    pub until: Mark,
}

/// Reason why a feed cannot be read, or not from that token on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum FeedRefusal {
    /// The role may not read the organisation's patients, or nobody has the organisation.
    #[error("there is no such organisation, or this role may not read its patients")]
    Unreadable,
    /// The database is a copy, in which no mark can be made.
    #[error("the database is a standby")]
    Standby,
    /// The register was moved into this PostgreSQL cluster, and nobody has said that it is complete.
    #[error("the register was restored or moved into this database")]
    Restored,
    /// The database has no such mark.
    #[error("the database does not know the token: it was restored to an earlier moment, or the token is too old")]
    UnknownToken,
    /// The mark was made in another PostgreSQL cluster.
    #[error("the token was made in another database")]
    OtherCluster,
    /// The mark was made for another organisation.
    #[error("the token was made for another organisation")]
    OtherOrganisation,
    /// The mark was made for the patients of another key, or for those of all keys.
    #[error("the token was made for another API key, or for all of them")]
    OtherKey,
}
