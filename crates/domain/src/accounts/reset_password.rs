//! How a member who forgot the password gets in again: an administrator or an operator makes a link, and anyone who
//! opens it chooses a password. Two-step sign-in stays on, so the link alone is not enough where it is; by a link that
//! a person made for them, members can remove their passkeys.

use time::{Duration, OffsetDateTime};

use crate::accounts::confirmation::ConfirmedMember;
use crate::accounts::hasher::{PasswordHasher, Requester};
use crate::accounts::member::{Account, LinkDelivery, NewMemberLink};
use crate::accounts::member_store::MemberStore;
use crate::accounts::password::Password;
use crate::accounts::password_reset_store::{
    IssuePasswordResetError, PasskeysAtReset, PasswordResetStore, ResetPasswordError,
};
use crate::accounts::salt::salt_for;
use crate::audit::action::Actor;
use crate::audit::context::{AuditContext, Origin};
use crate::email_address::EmailAddress;
use crate::ids::OrganisationId;
use crate::store_error::StoreError;
use crate::token::Token;

/// Time for which a reset link is open. Its member is waiting for it, so it need not outlast a weekend as an invitation
/// must.
pub const PASSWORD_RESET_LIFE: Duration = Duration::hours(24);

/// A reset link that was just made: the only time that its token is shown.
#[derive(Debug)]
pub struct IssuedPasswordReset {
    /// The address of the member whose link it is.
    pub email: EmailAddress,
    /// The secret of the link.
    pub token: Token,
    /// Time at which the link stops working.
    pub expires_at: OffsetDateTime,
}

/// Makes a link by which a member of the organisation can choose another password. It is open for
/// [`PASSWORD_RESET_LIFE`], and replaces the member's earlier one. For operators.
pub async fn issue_password_reset(
    members: &dyn MemberStore,
    resets: &dyn PasswordResetStore,
    organisation: OrganisationId,
    email: &EmailAddress,
    token: Token,
    delivery: LinkDelivery,
    audit: &AuditContext,
) -> Result<IssuedPasswordReset, IssuePasswordResetError> {
    let Some(member) = members.member(organisation, email).await? else {
        return Err(IssuePasswordResetError::NoSuchMember { organisation, email: email.clone() });
    };
    let expires_at = audit.at + PASSWORD_RESET_LIFE;
    let reset = NewMemberLink { token: token.digest(), expires_at };
    resets.issue_password_reset(&member, &reset, delivery, audit).await?;
    Ok(IssuedPasswordReset { email: member.email, token, expires_at })
}

/// Makes a link for each account with this address, unless too many were asked for, and says so to nobody but its
/// member. For strangers, after they were answered: the answer must not reveal who is a member.
pub async fn request_password_reset(
    members: &dyn MemberStore,
    resets: &dyn PasswordResetStore,
    email: &EmailAddress,
    make_token: impl Fn() -> Token,
    origin: Origin,
) -> Result<Vec<(Account, IssuedPasswordReset)>, StoreError> {
    let (expires_at, audit) = (origin.at + PASSWORD_RESET_LIFE, origin.by(Actor::Stranger));
    let mut made = Vec::new();
    for credentials in members.credentials(email, None).await? {
        let token = make_token();
        let reset = NewMemberLink { token: token.digest(), expires_at };
        if let Some(account) = resets.request_password_reset(credentials.account.id, &reset, &audit).await? {
            let email = account.email.clone();
            made.push((account, IssuedPasswordReset { email, token, expires_at }));
        }
    }
    Ok(made)
}

/// The same for a colleague of the administrator.
pub async fn reset_password_of_colleague(
    members: &dyn MemberStore,
    resets: &dyn PasswordResetStore,
    administrator: ConfirmedMember<'_>,
    email: &EmailAddress,
    token: Token,
    delivery: LinkDelivery,
    audit: &AuditContext,
) -> Result<IssuedPasswordReset, IssuePasswordResetError> {
    issue_password_reset(
        members,
        resets,
        administrator.organisation(),
        email,
        token,
        delivery,
        &administrator.confirm(audit),
    )
    .await
}

/// Gives the member of an open link another password, and uses the link up. The member is signed out everywhere.
pub async fn reset_password(
    members: &dyn MemberStore,
    resets: &dyn PasswordResetStore,
    hasher: &dyn PasswordHasher,
    token: &Token,
    (password, passkeys): (&Password, PasskeysAtReset),
    salt: [u8; 16],
    origin: Origin,
) -> Result<(), ResetPasswordError> {
    // A stranger must not make the service hash.
    let open = resets.password_reset(&token.digest(), origin.at).await?.ok_or(ResetPasswordError::NoReset)?;
    let requester = Requester::Guest(token.digest());
    let salt = salt_for(members, &open.account.email, salt).await?;
    let hash = hasher.hash(requester, password, salt).await?;
    // A person passed the link on: it does not prove who opened it.
    let audit = origin.by(Actor::Stranger);
    resets.reset_password(&token.digest(), &open.account, &hash, passkeys, &audit).await
}
