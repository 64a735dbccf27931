//! The one place where Diesel's errors are sorted, by kind only: messages change, and some engines lose the names of
//! constraints.

use diesel::result::{DatabaseErrorKind, Error};
use intake_domain::StoreError;

/// Meaning of a statement's failure for its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The connection is gone, or the server cannot write, or another transaction was faster: trying again may help.
    Transient,
    /// The database refused the statement: sending it again would not help.
    Refused,
    /// Diesel does not say: the statement may be at fault, or the database, whose disk may be full.
    Unknown,
}

pub(crate) fn failure(error: &Error) -> Failure {
    match error {
        // A row that was there a moment ago is gone: the next try will see that.
        Error::NotFound
        | Error::BrokenTransactionManager
        | Error::DatabaseError(
            DatabaseErrorKind::ClosedConnection
            | DatabaseErrorKind::UnableToSendCommand
            | DatabaseErrorKind::ReadOnlyTransaction
            | DatabaseErrorKind::SerializationFailure,
            _,
        ) => Failure::Transient,
        Error::DatabaseError(DatabaseErrorKind::Unknown, _) => Failure::Unknown,
        _ => Failure::Refused,
    }
}

pub(crate) fn is_foreign_key_violation(error: &Error) -> bool {
    matches!(error, Error::DatabaseError(DatabaseErrorKind::ForeignKeyViolation, _))
}

pub(crate) fn is_unique_violation(error: &Error) -> bool {
    matches!(error, Error::DatabaseError(DatabaseErrorKind::UniqueViolation, _))
}

/// Message of the database about a failure, with its details: only to be compared, because these hold values.
#[derive(PartialEq, Eq)]
pub(crate) struct Said(String, Option<String>);

/// None: the failure is not the database's.
pub(crate) fn said(error: &Error) -> Option<Said> {
    let Error::DatabaseError(_, information) = error else { return None };
    Some(Said(information.message().to_owned(), information.details().map(str::to_owned)))
}

/// The basis of a change no longer holds: see [`crate::accounts::confirmation`].
#[derive(Debug, thiserror::Error)]
#[error("the session has ended")]
pub(crate) struct SessionEnded;

/// The member's role does not allow the change: see [`crate::accounts::permission`].
#[derive(Debug, thiserror::Error)]
#[error("the member's role does not allow it")]
pub(crate) struct RoleTakenAway;

/// A statement failed although the database answers. Other causes of [`StoreError::Unavailable`] are that it does not.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct StatementFailed(intake_domain::Source);

pub(crate) fn store_error(error: Error) -> StoreError {
    match &error {
        Error::QueryBuilderError(cause) if cause.is::<SessionEnded>() => return StoreError::SessionEnded,
        Error::QueryBuilderError(cause) if cause.is::<RoleTakenAway>() => return StoreError::RoleTakenAway,
        _ => {}
    }
    match failure(&error) {
        // Values are validated before they get here, so the database is more likely to be at fault. Diesel does not
        // pass on the code by which the fault of a value could be told apart.
        Failure::Unknown => StoreError::Unavailable(StatementFailed(without_row_values(error)).into()),
        Failure::Transient => StoreError::Unavailable(without_row_values(error)),
        Failure::Refused => StoreError::Unexpected(without_row_values(error)),
    }
}

/// The error without its details, into which PostgreSQL puts whole rows. Diesel's `Display` shows only the message, but
/// its `Debug` shows everything, so the error itself is dropped.
pub(crate) fn without_row_values(error: Error) -> intake_domain::Source {
    match error {
        Error::DatabaseError(kind, information) => anyhow::anyhow!("{kind:?}: {}", information.message()).into(),
        other => other.into(),
    }
}
