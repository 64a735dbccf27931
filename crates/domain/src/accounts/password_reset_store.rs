//! The port to reset links, by which members choose another password.

use async_trait::async_trait;
use time::OffsetDateTime;

use crate::accounts::hasher::HasherError;
use crate::accounts::member::{Account, LinkDelivery, Member, NewMemberLink};
use crate::accounts::password::PasswordHash;
use crate::audit::context::AuditContext;
use crate::email_address::EmailAddress;
use crate::ids::{MemberId, OrganisationId};
use crate::store_error::StoreError;
use crate::token::TokenDigest;

/// Reset links for one member within a day, asked for on the page "Forgotten password?".
pub const RESETS_PER_DAY_MAX: u32 = 5;

/// Reason why no reset link was made.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum IssuePasswordResetError {
    /// The organisation has no member with this email address.
    #[error("organisation {organisation} has no member {email}")]
    NoSuchMember {
        /// The organisation that was searched.
        organisation: OrganisationId,
        /// The address that no member of it has.
        email: EmailAddress,
    },
    /// The link would be shown, and the member belongs to another organisation, too.
    #[error("the member needs a link that is mailed, or one that an operator makes")]
    SharedAccount,
    /// The member who asked for it is no administrator, or was removed in the meantime.
    #[error("only administrators make reset links")]
    NotAdministrator,
    /// Administrators made too many links for the member lately.
    #[error("the member got {RESETS_PER_DAY_MAX} links within a day")]
    TooManyLately,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reason why a reset link did not give its member another password.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum ResetPasswordError {
    /// The link is unknown, has expired, or was used or replaced.
    #[error("there is no such reset link")]
    NoReset,
    /// The password was neither hashed nor compared.
    #[error(transparent)]
    Hasher(#[from] HasherError),
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A reset link that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenReset {
    /// The account that gets another password by it.
    pub account: Account,
    /// True if passkeys can be removed by it: an operator made it, or an administrator of the person's only
    /// organisation. By a link that anybody can ask for, a thief of a mailbox would get past the second factor.
    pub may_remove_passkeys: bool,
}

/// Outcome of the passkeys of a member who resets the password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasskeysAtReset {
    /// They stay.
    Kept,
    /// All are removed, if the link allows it: a thief may have added one.
    Removed,
}

/// Reset links. Every change is recorded in the same transaction.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait PasswordResetStore: Send + Sync {
    /// Stores a reset link, as an administrator, in place of the member's earlier one. It ends when the member is
    /// removed, or its creator is removed or no longer an administrator. A link that an administrator is shown
    /// neither is made nor works for a member of several organisations: by it, one organisation could let a stranger
    /// into another.
    async fn issue_password_reset(
        &self,
        member: &Member,
        reset: &NewMemberLink,
        delivery: LinkDelivery,
        audit: &AuditContext,
    ) -> Result<(), IssuePasswordResetError>;

    /// Stores a reset link that a stranger asked for, in place of the member's earlier one. None: the member was
    /// removed, or [`RESETS_PER_DAY_MAX`] were asked for within a day.
    async fn request_password_reset(
        &self,
        member: MemberId,
        reset: &NewMemberLink,
        audit: &AuditContext,
    ) -> Result<Option<Account>, StoreError>;

    /// The reset link, if it is still open at that moment.
    async fn password_reset(&self, token: &TokenDigest, now: OffsetDateTime) -> Result<Option<OpenReset>, StoreError>;

    /// Uses up the member's reset link and gives them another password. Ends every session of the member and every
    /// waiting sign-in; the second factor stays as it is, but for passkeys that are to be removed.
    async fn reset_password(
        &self,
        token: &TokenDigest,
        account: &Account,
        password: &PasswordHash,
        passkeys: PasskeysAtReset,
        audit: &AuditContext,
    ) -> Result<(), ResetPasswordError>;
}
