//! The port that reads the audit log. Entries are written by the other ports, each in the transaction of its change.
//! Only what was refused, and changed nothing, is recorded here.

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::audit::action::Action;
use crate::audit::context::AuditContext;
use crate::audit::entry::AuditEntry;
use crate::audit::kind::ActionKind;
use crate::ids::{AuditEntryId, KeyId, OrganisationId};
use crate::store_error::StoreError;

/// Which entries are looked for; by itself, all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryFilter {
    /// Only those of this kind. Actions that a newer program recorded are of no kind.
    pub kind: Option<ActionKind>,
    /// Only those about this API key.
    pub key: Option<KeyId>,
    /// Only those that a person did or that were done to one: part of a name or email address, in any case. A member is
    /// found by today's name and address, too, whatever they were when the member acted.
    pub person: Option<String>,
    /// Only those recorded at this moment or later.
    pub from: Option<OffsetDateTime>,
    /// Only those recorded before this moment.
    pub until: Option<OffsetDateTime>,
}

/// Position in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryPosition {
    /// At its end.
    Newest,
    /// Just before this entry.
    Before(AuditEntryId),
    /// Just after this entry.
    After(AuditEntryId),
}

/// Entries that one search by kind or person looks at: enough for most, and few enough for one statement however long
/// the log is.
pub const ENTRIES_SEARCHED: u32 = 10_000;

/// Page of entries that a search has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryPage {
    /// The entries, the newest first.
    pub entries: Vec<AuditEntry>,
    /// The last entry that was looked at, if the search stopped there before it had found enough. It goes on beside it.
    pub searched_to: Option<AuditEntryId>,
}

/// Action that a member was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedAction {
    /// The organisation in whose log it is recorded.
    pub organisation: OrganisationId,
    /// Reason, as an action of the log.
    pub action: Action,
    /// The method and the route, without ids.
    pub route: String,
}

/// The audit log.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Up to `limit` entries of the organisation that fit the filter, those nearest to the position, among
    /// [`ENTRIES_SEARCHED`]. There are none beside an entry that does not exist.
    async fn entries(
        &self,
        organisation: OrganisationId,
        filter: &EntryFilter,
        position: EntryPosition,
        limit: u32,
    ) -> Result<EntryPage, StoreError>;

    /// Records what a member was refused.
    async fn note_refusal(&self, refused: &RefusedAction, audit: &AuditContext) -> Result<(), StoreError>;
}
