//! The port to what people call a key and know about it.

use async_trait::async_trait;

use crate::audit::context::AuditContext;
use crate::ids::{KeyId, OrganisationId};
use crate::key_note::{KeyContact, KeyNote};
use crate::keys::manage_error::ManageKeysError;
use crate::name::Name;

/// A text that people write about a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyText {
    /// The name of the key.
    Name(Name),
    /// The note about it.
    Note(KeyNote),
    /// The company or person to call about it.
    Contact(KeyContact),
}

/// The texts about keys. A change returns false if it was so before: then nothing is recorded. It fails with
/// [`ManageKeysError::NoSuchKey`], [`ManageKeysError::KeyIsOver`] (a revoked key stays as it was) or
/// [`ManageKeysError::Store`].
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait KeyDescriptionStore: Send + Sync {
    /// Writes another text about one of the organisation's keys, and records the change with it.
    async fn describe(
        &self,
        organisation: OrganisationId,
        key: KeyId,
        text: KeyText,
        audit: &AuditContext,
    ) -> Result<bool, ManageKeysError>;

    /// Clears the mark that a key was sent in clear, and records the change with it. Returns false if it had no mark.
    async fn clear_sent_in_clear(&self, key: KeyId, audit: &AuditContext) -> Result<bool, ManageKeysError>;
}
