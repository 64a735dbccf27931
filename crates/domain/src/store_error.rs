//! What can go wrong behind a port, as far as a caller can act on it.

use std::error::Error;

/// The cause of a port's failure, only for the log: no client ever reads it.
pub type Source = Box<dyn Error + Send + Sync>;

/// Reason why a port could not do its work.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum StoreError {
    /// More work is waiting than the service accepts; trying again later may help.
    #[error("the service is full")]
    Overloaded,
    /// The member's session has ended, or the password has changed, since the member confirmed the change.
    #[error("the session has ended")]
    SessionEnded,
    /// The member has lost the role that allowed the change, since the member asked for it.
    #[error("the member's role does not allow it")]
    RoleTakenAway,
    /// The store could not be reached within the deadline; trying again later may help.
    #[error("the database cannot do it now")]
    Unavailable(#[source] Source),
    /// Another transaction holds what has to be changed. Nothing was changed, nor will be.
    #[error("the database cannot do it now")]
    Locked(#[source] Source),
    /// Anything else: a defect of the service or of its store.
    #[error("the store failed")]
    Unexpected(#[source] Source),
}
