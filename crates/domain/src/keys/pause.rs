//! The port that pauses keys and resumes them.

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::audit::context::AuditContext;
use crate::ids::{KeyId, OrganisationId};
use crate::store_error::StoreError;

/// Outcome of an attempt to pause a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseOutcome {
    /// The key is paused, by this call or an earlier one.
    Paused {
        /// Since when, by the store's clock.
        at: OffsetDateTime,
    },
    /// The key was revoked or has expired.
    Over,
    /// There is no such key, or it belongs to another organisation than the one asked for.
    NotFound,
}

/// Outcome of an attempt to resume a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeOutcome {
    /// The key works again.
    Resumed,
    /// The key was not paused; nothing was recorded.
    NotPaused,
    /// The key was revoked or has expired.
    Over,
    /// There is no such key, or it belongs to another organisation than the one asked for.
    NotFound,
}

/// Pauses keys and resumes them.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait KeyPauseStore: Send + Sync {
    /// Pauses a key, and records it: once this has returned, no request that starts afterwards creates anything with
    /// it, until it is resumed. If an organisation is given, only its keys are found.
    async fn pause(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        audit: &AuditContext,
    ) -> Result<PauseOutcome, StoreError>;

    /// Resumes a key that was paused and is neither revoked nor expired, and records it. If an organisation is given,
    /// only its keys are found.
    async fn resume(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        audit: &AuditContext,
    ) -> Result<ResumeOutcome, StoreError>;
}
