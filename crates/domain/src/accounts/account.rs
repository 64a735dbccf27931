//! What members change about their own account: their name, their email address and their password.

use time::{Duration, OffsetDateTime};

use crate::accounts::account_store::{AccountStore, ChangeEmailError, ChangeNameError};
use crate::accounts::confirmation::{ConfirmedMember, own_hash};
use crate::accounts::email_change_store::{ConfirmEmailError, EmailChangeStore, RequestEmailError};
use crate::accounts::hasher::{HasherError, PasswordHasher, Requester};
use crate::accounts::identity_provider::Identity;
use crate::accounts::member::{Account, Member, NewMemberLink};
use crate::accounts::member_store::MemberStore;
use crate::accounts::password::Password;
use crate::accounts::presented::PresentedPassword;
use crate::accounts::salt::{salt_for, salt_of};
use crate::audit::context::{AuditContext, Origin};
use crate::email_address::EmailAddress;
use crate::name::Name;
use crate::store_error::StoreError;
use crate::token::Token;

/// Reason why a member's password was not changed.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum ChangePasswordError {
    /// It is the password that the member has.
    #[error("the password is the same")]
    Same,
    /// The password was neither hashed nor compared.
    #[error(transparent)]
    Hasher(#[from] HasherError),
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Gives a member another name. The audit log keeps the old one where the member acted under it.
pub async fn change_name(
    accounts: &dyn AccountStore,
    member: &Member,
    name: &str,
    audit: &AuditContext,
) -> Result<(), ChangeNameError> {
    if name == member.name.as_str() {
        return Ok(());
    }
    let name = Name::of_member(name).map_err(ChangeNameError::Invalid)?;
    accounts.change_name(member, &name, audit).await
}

/// Gives a member another password. All other sessions of the member end.
pub async fn change_password(
    accounts: &dyn AccountStore,
    members: &dyn MemberStore,
    hasher: &dyn PasswordHasher,
    member: ConfirmedMember<'_>,
    password: &Password,
    salt: [u8; 16],
    audit: &AuditContext,
) -> Result<(), ChangePasswordError> {
    let known = members.credentials(&member.member().email, None).await?;
    let hash = hasher.hash(Requester::NewPassword, password, salt_of(&known, salt)).await?;
    // With one salt, one password has one hash.
    if known.iter().any(|known| known.account.id == member.member().id && known.password.as_ref() == Some(&hash)) {
        return Err(ChangePasswordError::Same);
    }
    Ok(accounts.change_password(member.member(), &hash, &member.confirm(audit)).await?)
}

/// Reason why a member's account was not linked to a person at the provider.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum LinkError {
    /// The person has another address there.
    #[error("the person has another address at the provider")]
    OtherAddress,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Links a member's account to the person who has just signed in at the provider, and who has the same address there.
pub async fn link_to_provider(
    accounts: &dyn AccountStore,
    member: ConfirmedMember<'_>,
    identity: &Identity,
    audit: &AuditContext,
) -> Result<(), LinkError> {
    if identity.email.folded() != member.member().email.folded() {
        return Err(LinkError::OtherAddress);
    }
    Ok(accounts.link_to_provider(member.member(), &identity.subject, &member.confirm(audit)).await?)
}

/// Time for which a new address can be confirmed.
pub const EMAIL_CHANGE_LIFE: Duration = Duration::hours(24);

/// Begins to change a member's address: the link of this token, mailed to the new address, completes it. Whether
/// another member has the address is not said, because it is not proved yet that the mailbox is the member's.
pub async fn request_email_change(
    changes: &dyn EmailChangeStore,
    member: ConfirmedMember<'_>,
    email: &EmailAddress,
    token: &Token,
    audit: &AuditContext,
) -> Result<OffsetDateTime, RequestEmailError> {
    let expires_at = audit.at + EMAIL_CHANGE_LIFE;
    let link = NewMemberLink { token: token.digest(), expires_at };
    changes.request_email_change(member.member(), email, &link, &member.confirm(audit)).await?;
    Ok(expires_at)
}

/// Gives the member of an open link the address that it was mailed to. All sessions of the member end. Returns the
/// member as they were.
pub async fn confirm_email_change(
    changes: &dyn EmailChangeStore,
    token: &Token,
    origin: Origin,
) -> Result<(Account, EmailAddress), ConfirmEmailError> {
    let digest = token.digest();
    let (account, email) = changes.email_change(&digest, origin.at).await?.ok_or(ConfirmEmailError::NoChange)?;
    changes.confirm_email_change(&digest, &account, &email, &origin.by(account.actor())).await?;
    Ok((account, email))
}

/// Gives a member another email address, with which they sign in from then on. All other sessions of the member
/// end. Nothing proves the address, and another organisation may have an account with it: this must not reveal that, so
/// the password is hashed again, whether or not there is one.
pub async fn change_email(
    accounts: &dyn AccountStore,
    members: &dyn MemberStore,
    hasher: &dyn PasswordHasher,
    member: ConfirmedMember<'_>,
    (email, password): (&EmailAddress, &PresentedPassword),
    salt: [u8; 16],
    audit: &AuditContext,
) -> Result<(), ChangeEmailError> {
    if *email == member.member().email {
        return Ok(());
    }
    let own = own_hash(members, member.member()).await?;
    let right = hasher.find(Requester::NewPassword, password, own.as_slice()).await?;
    let Some(right) = right else { return Err(ChangeEmailError::WrongPassword) };
    let password = Password::known(password.expose());
    let salt = salt_for(members, email, salt).await?;
    let new = hasher.hash(Requester::NewPassword, &password, salt).await?;
    accounts.change_email(member.member(), email, &right, &new, &member.confirm(audit)).await
}
