//! The port to changes of an email address that wait for a mailed link.

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::accounts::member::{Account, Member, NewMemberLink};
use crate::audit::context::AuditContext;
use crate::email_address::EmailAddress;
use crate::store_error::StoreError;
use crate::token::TokenDigest;

/// Changes of the address that a member may ask for within a day, each of which mails a link to someone who may be a
/// stranger: the first was mistyped, the second went to spam.
pub const EMAIL_CHANGES_PER_DAY_MAX: u32 = 5;
/// Changes that the members of an organisation may ask for within an hour.
pub const EMAIL_CHANGES_PER_HOUR_MAX: u32 = 20;

/// Reason why no change of an address was begun.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum RequestEmailError {
    /// The member asked for [`EMAIL_CHANGES_PER_DAY_MAX`] changes within a day, or the organisation's members for
    /// [`EMAIL_CHANGES_PER_HOUR_MAX`] within an hour.
    #[error("too many changes of addresses were asked for")]
    TooManyLately,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reason why a new address was not confirmed.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum ConfirmEmailError {
    /// The link is unknown, has expired, or was used or replaced.
    #[error("there is no such change of an address")]
    NoChange,
    /// Another member signs in with the address.
    #[error("the email address is taken")]
    Taken,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Changes of an email address that wait for a mailed link. Every change is recorded in the same transaction.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait EmailChangeStore: Send + Sync {
    /// Stores the address that a member wants to sign in with, until it is confirmed by a link that was mailed to it,
    /// in place of an earlier one, unless there were too many lately.
    async fn request_email_change(
        &self,
        member: &Member,
        email: &EmailAddress,
        link: &NewMemberLink,
        audit: &AuditContext,
    ) -> Result<(), RequestEmailError>;

    /// The member who asked for a change of their address by this link, if it is still open, and the new address.
    async fn email_change(
        &self,
        token: &TokenDigest,
        now: OffsetDateTime,
    ) -> Result<Option<(Account, EmailAddress)>, StoreError>;

    /// Uses the link up, and gives the member the address unless another account has it. Ends every session of the
    /// member, every waiting sign-in and an open reset link.
    async fn confirm_email_change(
        &self,
        token: &TokenDigest,
        account: &Account,
        email: &EmailAddress,
        audit: &AuditContext,
    ) -> Result<(), ConfirmEmailError>;
}
