//! What members change about their own account: their name, their email address and their password.

use crate::audit::action::Deed;
use crate::email_address::EmailAddress;
use crate::members::confirmation::ConfirmedMember;
use crate::members::hasher::{PasswordHasher, Waiter};
use crate::members::member::Member;
use crate::members::password::Password;
use crate::members::store::{EmailOutcome, MemberStore};
use crate::name::{Name, NameError};
use crate::sessions::token::Token;
use crate::store_error::StoreError;

/// Why a member's name was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeNameError {
    /// The text cannot be a name.
    #[error("the name is refused")]
    Invalid(#[source] NameError),
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a member's email address was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeEmailError {
    /// Another member already signs in with this address, of this organisation or another.
    #[error("the email address is taken")]
    Taken,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Gives a member another name. The audit log keeps the old one where the member acted under it.
pub async fn change_name(
    members: &dyn MemberStore,
    member: &Member,
    name: &str,
    deed: &Deed,
) -> Result<(), ChangeNameError> {
    let name = Name::new(name).map_err(ChangeNameError::Invalid)?;
    if name != member.name {
        members.change_name(member, &name, deed).await?;
    }
    Ok(())
}

/// Gives a member another password. All other sessions of the member end; the one of this token goes on.
pub async fn change_password(
    members: &dyn MemberStore,
    hasher: &dyn PasswordHasher,
    member: ConfirmedMember<'_>,
    password: &Password,
    salt: [u8; 16],
    session: &Token,
    deed: &Deed,
) -> Result<(), StoreError> {
    let member = member.member();
    let hash = hasher.hash(Waiter::Member(member.id), password, salt).await?;
    members.change_password(member, &hash, &session.digest(), deed).await
}

/// Gives a member another email address, with which they sign in from then on. All other sessions of the member end; the
/// one of this token goes on.
pub async fn change_email(
    members: &dyn MemberStore,
    member: ConfirmedMember<'_>,
    email: &EmailAddress,
    session: &Token,
    deed: &Deed,
) -> Result<(), ChangeEmailError> {
    let member = member.member();
    if *email == member.email {
        return Ok(());
    }
    match members.change_email(member, email, &session.digest(), deed).await? {
        EmailOutcome::Changed => Ok(()),
        EmailOutcome::Taken => Err(ChangeEmailError::Taken),
    }
}
