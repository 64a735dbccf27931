//! The port to changes of an email address that wait for a mailed link.

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::audit::action::AuditContext;
use crate::email_address::EmailAddress;
use crate::members::account_store::EmailOutcome;
use crate::members::member::{Account, Member, NewMemberLink};
use crate::sessions::token::TokenDigest;
use crate::store_error::StoreError;

/// Changes of an email address that wait for a mailed link. Every change is recorded in the same transaction.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait EmailChangeStore: Send + Sync {
    /// Stores the address that a member wants to sign in with, until it is confirmed by a link that was mailed to it,
    /// in place of an earlier one.
    async fn request_email_change(
        &self,
        member: &Member,
        email: &EmailAddress,
        link: &NewMemberLink,
        audit: &AuditContext,
    ) -> Result<(), StoreError>;

    /// The member who asked for a change of their address by this link, if it is still open, and the new address.
    async fn email_change(
        &self,
        token: &TokenDigest,
        now: OffsetDateTime,
    ) -> Result<Option<(Account, EmailAddress)>, StoreError>;

    /// Uses the link up, and gives the member the address unless another account has it. Ends every session of the
    /// member, every waiting sign-in and an open reset link. None: the link is no longer open.
    async fn confirm_email_change(
        &self,
        token: &TokenDigest,
        account: &Account,
        email: &EmailAddress,
        audit: &AuditContext,
    ) -> Result<Option<EmailOutcome>, StoreError>;
}
