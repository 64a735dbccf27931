//! The one place where Diesel's errors are told apart, by kind alone: messages change and constraint names are lost on
//! some engines.

use diesel::result::{DatabaseErrorKind, Error};
use intake_domain::StoreError;

/// What a failed statement means for the one who sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The connection is gone, or leads to a server that cannot write, or others were faster: trying again may help.
    Passing,
    /// The database refused what was sent: sending it again changes nothing.
    Refused,
    /// Diesel does not tell: what was sent may be at fault, or the database, whose disk may be full.
    Unclear,
}

pub(crate) fn failure(error: &Error) -> Failure {
    match error {
        // A row that was there a moment ago has gone: the next try sees it so.
        Error::NotFound
        | Error::BrokenTransactionManager
        | Error::DatabaseError(
            DatabaseErrorKind::ClosedConnection
            | DatabaseErrorKind::UnableToSendCommand
            | DatabaseErrorKind::ReadOnlyTransaction
            | DatabaseErrorKind::SerializationFailure,
            _,
        ) => Failure::Passing,
        Error::DatabaseError(DatabaseErrorKind::Unknown, _) => Failure::Unclear,
        _ => Failure::Refused,
    }
}

pub(crate) fn is_foreign_key_violation(error: &Error) -> bool {
    matches!(error, Error::DatabaseError(DatabaseErrorKind::ForeignKeyViolation, _))
}

pub(crate) fn store_error(error: Error) -> StoreError {
    match failure(&error) {
        // What is sent is fit to be stored before it gets here, so the database is the likelier one.
        Failure::Passing | Failure::Unclear => StoreError::Unavailable(discreet(error)),
        Failure::Refused => StoreError::Unexpected(discreet(error)),
    }
}

/// An error without its details: PostgreSQL puts whole rows into them. Diesel's `Display` gives the message alone, its
/// `Debug` gives all, so the error itself is left behind.
pub(crate) fn discreet(error: Error) -> intake_domain::Source {
    match error {
        Error::DatabaseError(kind, information) => anyhow::anyhow!("{kind:?}: {}", information.message()).into(),
        other => other.into(),
    }
}
