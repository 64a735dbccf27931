//! Outcome of revoking a key.

use time::OffsetDateTime;

/// Outcome of the revocation of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum RevokeOutcome {
    /// The key was revoked by this call.
    Revoked {
        /// Time of the revocation, by the store's clock: not before the last use that was allowed.
        at: OffsetDateTime,
    },
    /// The key had been revoked before; nothing was recorded.
    AlreadyRevoked {
        /// Time of that revocation.
        at: OffsetDateTime,
    },
}
