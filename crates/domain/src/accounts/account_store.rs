//! The port to what members change about their own account.

use async_trait::async_trait;

use crate::accounts::hasher::HasherError;
use crate::accounts::member::Member;
use crate::accounts::password::PasswordHash;
use crate::accounts::subject::Subject;
use crate::audit::context::AuditContext;
use crate::email_address::EmailAddress;
use crate::name::{Name, NameError};
use crate::store_error::StoreError;

/// Reason why a member's name was not changed.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum ChangeNameError {
    /// The text cannot be a name, or another member has it.
    #[error("the name is refused")]
    Invalid(#[source] NameError),
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reason why a member's email address was not changed.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum ChangeEmailError {
    /// Another member of one of the member's organisations has this address.
    #[error("the email address is taken")]
    Taken,
    /// The password is not the member's.
    #[error("the password is wrong")]
    WrongPassword,
    /// An account with the address was made, or the member's password changed, while the password was hashed.
    #[error("the accounts with the email address have changed")]
    AccountChanged,
    /// The password was neither hashed nor compared.
    #[error(transparent)]
    Hasher(#[from] HasherError),
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The accounts of members. Every change is recorded in the same transaction.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait AccountStore: Send + Sync {
    /// Gives the member another name, unless another member of one of their organisations has it.
    async fn change_name(&self, member: &Member, name: &Name, audit: &AuditContext) -> Result<(), ChangeNameError>;

    /// Gives the member another email address, which nothing proves, unless another member of one of their
    /// organisations has it. `seen` is the hash of the password until then; `new` has the salt of the accounts with the
    /// new address. Ends every session of the member but the one in which it was confirmed, every waiting sign-in and
    /// an open reset link.
    async fn change_email(
        &self,
        member: &Member,
        email: &EmailAddress,
        seen: &PasswordHash,
        new: &PasswordHash,
        audit: &AuditContext,
    ) -> Result<(), ChangeEmailError>;

    /// Links the member's account to this person at the provider of single sign-on, who has the member's address there.
    /// Ends every session of the member but the one in which it was confirmed, every waiting sign-in, and open links.
    async fn link_to_provider(
        &self,
        member: &Member,
        subject: &Subject,
        audit: &AuditContext,
    ) -> Result<(), StoreError>;

    /// Lets single sign-on find the member's account by its address, which an operator confirms, even if it was linked
    /// before. Ends everything by which anyone gets into the account: password, passkeys, second factor, sessions,
    /// waiting sign-ins, and open links.
    async fn confirm_address(&self, member: &Member, audit: &AuditContext) -> Result<(), StoreError>;

    /// Gives the member another password. Ends every session of the member but the one in which it was confirmed, every
    /// waiting sign-in and an open reset link.
    async fn change_password(
        &self,
        member: &Member,
        password: &PasswordHash,
        audit: &AuditContext,
    ) -> Result<(), StoreError>;
}
