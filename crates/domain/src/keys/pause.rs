//! The port that pauses keys and resumes them.

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::audit::context::AuditContext;
use crate::ids::{KeyId, OrganisationId};
use crate::keys::manage_error::ManageKeysError;

/// Outcome of the pause of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum PauseOutcome {
    /// The key was paused by this call.
    Paused {
        /// Time of the pause, by the store's clock.
        at: OffsetDateTime,
    },
    /// The key had been paused before; nothing was recorded.
    AlreadyPaused {
        /// Time of that pause.
        at: OffsetDateTime,
    },
}

/// Outcome of the resumption of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum ResumeOutcome {
    /// The key was resumed by this call.
    Resumed,
    /// The key was not paused; nothing was recorded.
    NotPaused,
}

/// Pauses keys and resumes them. Fails with [`ManageKeysError::NoSuchKey`], [`ManageKeysError::KeyIsOver`] or
/// [`ManageKeysError::Store`].
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
    ) -> Result<PauseOutcome, ManageKeysError>;

    /// Resumes a key that was paused and is neither revoked nor expired, and records it. If an organisation is given,
    /// only its keys are found.
    async fn resume(
        &self,
        key: KeyId,
        within: Option<OrganisationId>,
        audit: &AuditContext,
    ) -> Result<ResumeOutcome, ManageKeysError>;
}
