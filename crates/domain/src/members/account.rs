//! What members change about their own account: their name and their password.

use crate::audit::action::Deed;
use crate::members::hasher::{PasswordHasher, Waiter};
use crate::members::member::Member;
use crate::members::password::{Password, PasswordError};
use crate::members::presented::PresentedPassword;
use crate::members::store::MemberStore;
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

/// Why a member's password was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangePasswordError {
    /// The current password is not the member's.
    #[error("the password is wrong")]
    WrongPassword,
    /// The text cannot be a password.
    #[error("the new password is refused")]
    Invalid(#[source] PasswordError),
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The form that a member fills in to change the password, with what the service adds.
#[derive(Debug)]
pub struct ChangePasswordRequest<'a> {
    /// The password that the member has, as typed.
    pub current: &'a PresentedPassword,
    /// The password that the member wants, as typed.
    pub new: &'a PresentedPassword,
    /// Random bytes for the new password's hash.
    pub salt: [u8; 16],
    /// The token of the session in which the form was sent: the only session that goes on.
    pub session: &'a Token,
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

/// Gives a member another password. All other sessions of the member end.
pub async fn change_password(
    members: &dyn MemberStore,
    hasher: &dyn PasswordHasher,
    member: &Member,
    request: ChangePasswordRequest<'_>,
    deed: &Deed,
) -> Result<(), ChangePasswordError> {
    let ChangePasswordRequest { current, new, salt, session } = request;
    let new = Password::new(new.expose()).map_err(ChangePasswordError::Invalid)?;
    if !is_own_password(members, hasher, member, current).await? {
        return Err(ChangePasswordError::WrongPassword);
    }
    let hash = hasher.hash(Waiter::Member(member.id), &new, salt).await.map_err(StoreError::from)?;
    members.change_password(member, &hash, &session.digest(), deed).await?;
    Ok(())
}

/// Whether the text is the password of this member, who is signed in.
pub(crate) async fn is_own_password(
    members: &dyn MemberStore,
    hasher: &dyn PasswordHasher,
    member: &Member,
    password: &PresentedPassword,
) -> Result<bool, StoreError> {
    let hash = members.credentials(&member.email, None).await?.map(|credentials| credentials.password);
    hasher.matches(Waiter::Member(member.id), password, hash).await.map_err(StoreError::from)
}
