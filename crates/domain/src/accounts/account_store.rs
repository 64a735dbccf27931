//! The port to what members change about their own account.

use async_trait::async_trait;

use crate::accounts::member::Member;
use crate::accounts::password::PasswordHash;
use crate::accounts::subject::Subject;
use crate::audit::context::AuditContext;
use crate::email_address::EmailAddress;
use crate::name::Name;
use crate::store_error::StoreError;

/// Outcome of an attempt to change a member's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum NameOutcome {
    /// Other members see it from now on.
    Changed,
    /// Another member of the organisation has it.
    Taken,
}

/// Outcome of an attempt to change a member's email address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum EmailOutcome {
    /// The member signs in with it.
    Changed,
    /// Another account already has it. Where no mail proves it: another member of the same organisation.
    Taken,
    /// An account with the address was made, or the member's password changed, while the password was hashed.
    AccountChanged,
}

/// The accounts of members. Every change is recorded in the same transaction.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait AccountStore: Send + Sync {
    /// Gives the member another name, unless another member of one of their organisations has it.
    async fn change_name(&self, member: &Member, name: &Name, audit: &AuditContext) -> Result<NameOutcome, StoreError>;

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
    ) -> Result<EmailOutcome, StoreError>;

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
