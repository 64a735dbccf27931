//! The port to what people call a key and know about it.

use async_trait::async_trait;

use crate::audit::context::AuditContext;
use crate::ids::{KeyId, OrganisationId};
use crate::key_note::{KeyContact, KeyNote};
use crate::keys::manage_error::ManageKeysError;
use crate::name::Name;

/// The names of keys, the notes about them, and whom to call. A change returns false if it was so before: then nothing
/// is recorded. It fails with [`ManageKeysError::NoSuchKey`], [`ManageKeysError::KeyIsOver`] (a revoked key stays as it
/// was) or [`ManageKeysError::Store`].
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
    ) -> Result<bool, ManageKeysError>;

    /// Writes another note about one of the organisation's keys, and records the change with it.
    async fn write_note(
        &self,
        organisation: OrganisationId,
        key: KeyId,
        note: &KeyNote,
        audit: &AuditContext,
    ) -> Result<bool, ManageKeysError>;

    /// Writes down whom to call about one of the organisation's keys, and records the change with it.
    async fn write_contact(
        &self,
        organisation: OrganisationId,
        key: KeyId,
        contact: &KeyContact,
        audit: &AuditContext,
    ) -> Result<bool, ManageKeysError>;

    /// Clears the mark that a key was sent in clear, and records the change with it. Returns false if it had no mark.
    async fn clear_sent_in_clear(&self, key: KeyId, audit: &AuditContext) -> Result<bool, ManageKeysError>;
}
