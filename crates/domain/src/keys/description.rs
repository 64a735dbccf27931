//! The port to what people call a key and know about it.

use async_trait::async_trait;

use crate::audit::context::AuditContext;
use crate::ids::{KeyId, OrganisationId};
use crate::key_note::{KeyContact, KeyNote};
use crate::name::Name;
use crate::store_error::StoreError;

/// Outcome of an attempt to change what people call a key or know about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum ChangeKeyOutcome {
    /// It is changed.
    Changed,
    /// It was so before; nothing was recorded.
    Unchanged,
    /// The key was revoked: it stays as it was then.
    Revoked,
    /// The organisation has no such key.
    NotFound,
}

/// Outcome of an attempt to clear a key's mark that it was sent in clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum ClearMarkOutcome {
    /// The mark is gone.
    Cleared,
    /// The key has no mark; nothing was changed or recorded.
    NotMarked,
    /// There is no such key.
    NotFound,
}

/// The names of keys, the notes about them, and whom to call.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait KeyDescriptionStore: Send + Sync {
    /// Gives one of the organisation's keys another name, and records the change with it.
    async fn rename(
        &self,
        organisation: OrganisationId,
        key: KeyId,
        name: &Name,
        audit: &AuditContext,
    ) -> Result<ChangeKeyOutcome, StoreError>;

    /// Writes another note about one of the organisation's keys, and records the change with it.
    async fn write_note(
        &self,
        organisation: OrganisationId,
        key: KeyId,
        note: &KeyNote,
        audit: &AuditContext,
    ) -> Result<ChangeKeyOutcome, StoreError>;

    /// Writes down whom to call about one of the organisation's keys, and records the change with it.
    async fn write_contact(
        &self,
        organisation: OrganisationId,
        key: KeyId,
        contact: &KeyContact,
        audit: &AuditContext,
    ) -> Result<ChangeKeyOutcome, StoreError>;

    /// Clears the mark that a key was sent in clear, and records the change with it.
    async fn clear_sent_in_clear(&self, key: KeyId, audit: &AuditContext) -> Result<ClearMarkOutcome, StoreError>;
}
