//! The port to the maximum age of an organisation's keys.

use async_trait::async_trait;

use crate::accounts::member_store::AdministerError;
use crate::audit::context::AuditContext;
use crate::ids::OrganisationId;
use crate::keys::key_age::KeyAge;

/// The maximum age of an organisation's keys.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait KeyAgeStore: Send + Sync {
    /// Sets the maximum age of the organisation's keys, none for no limit, and records the old and the new one. Keys
    /// that exist keep their end.
    async fn limit_key_age(
        &self,
        organisation: OrganisationId,
        age: Option<KeyAge>,
        audit: &AuditContext,
    ) -> Result<(), AdministerError>;
}
