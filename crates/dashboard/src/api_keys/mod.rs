//! Settings → API keys.

use intake_domain::{KeyId, KeyRecord, KeyStore, ManageKeysError};

use crate::page::error::PageError;
use crate::page::visitor::Visitor;

pub(crate) mod create;
pub(crate) mod created;
pub(crate) mod expiry;
pub(crate) mod filter;
pub(crate) mod first_steps;
pub(crate) mod list;
pub(crate) mod note;
pub(crate) mod refusals;
pub(crate) mod rename;
pub(crate) mod replace;
pub(crate) mod revoke;
pub(crate) mod usage;

/// The key with this id, if the visitor's organisation has it: other organisations' keys are not found.
pub(crate) async fn own_key(visitor: &Visitor, id: &str, keys: &dyn KeyStore) -> Result<KeyRecord, PageError> {
    let id: KeyId = id.parse().map_err(|_| PageError::NotFound)?;
    keys.key(visitor.organisation(), id).await?.ok_or(PageError::NotFound)
}

impl From<ManageKeysError> for PageError {
    fn from(error: ManageKeysError) -> Self {
        match error {
            ManageKeysError::NoSuchOrganisation(_) | ManageKeysError::NoSuchKey(_) => Self::NotFound,
            ManageKeysError::AlreadyMade | ManageKeysError::NothingToReplace => Self::BadForm,
            ManageKeysError::TooManyKeys => Self::TooManyKeys,
            ManageKeysError::Store(error) => error.into(),
        }
    }
}
