//! How a member who forgot the password gets in again: an administrator or an operator makes a link, and whoever opens it
//! chooses a password. Two-step sign-in stays on, so the link alone is not enough where it is.

use time::{Duration, OffsetDateTime};

use crate::audit::action::{Actor, Deed, Origin};
use crate::email_address::EmailAddress;
use crate::ids::OrganisationId;
use crate::members::confirmation::ConfirmedMember;
use crate::members::hasher::{PasswordHasher, Waiter};
use crate::members::password::{Password, PasswordError};
use crate::members::presented::PresentedPassword;
use crate::members::store::{IssueOutcome, MemberStore, NewPasswordReset, PasswordResetOutcome};
use crate::sessions::token::Token;
use crate::store_error::StoreError;

/// How long a reset link is open. Its member is waiting for it, so it need not outlast a weekend as an invitation must.
pub const PASSWORD_RESET_LIFE: Duration = Duration::hours(24);

/// A reset link that was just made: the only time that its token is shown.
#[derive(Debug)]
pub struct IssuedPasswordReset {
    /// The address of the member whose link it is.
    pub email: EmailAddress,
    /// The secret of the link.
    pub token: Token,
    /// When the link stops working.
    pub expires_at: OffsetDateTime,
}

/// Why no reset link was made.
#[derive(Debug, thiserror::Error)]
pub enum IssuePasswordResetError {
    /// The organisation has no member with this email address.
    #[error("organisation {organisation} has no member {email}")]
    NoSuchMember {
        /// The organisation that was searched.
        organisation: OrganisationId,
        /// The address that no member of it has.
        email: EmailAddress,
    },
    /// The member who asked for it is no administrator, or was removed in the meantime.
    #[error("only administrators make reset links")]
    NotAdministrator,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a reset link did not give its member another password.
#[derive(Debug, thiserror::Error)]
pub enum ResetPasswordError {
    /// The text cannot be a password.
    #[error("the new password is refused")]
    Invalid(#[source] PasswordError),
    /// The link is unknown, has expired, or was used or replaced.
    #[error("there is no such reset link")]
    NoReset,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes a link by which a member of the organisation can choose another password. It is open for
/// [`PASSWORD_RESET_LIFE`], and replaces the member's earlier one. For operators.
pub async fn issue_password_reset(
    members: &dyn MemberStore,
    organisation: OrganisationId,
    email: &EmailAddress,
    token: Token,
    deed: &Deed,
) -> Result<IssuedPasswordReset, IssuePasswordResetError> {
    let no_such_member = || IssuePasswordResetError::NoSuchMember { organisation, email: email.clone() };
    let member = members.credentials(email, None).await?.map(|credentials| credentials.member);
    let member = member.filter(|member| member.organisation_id == organisation).ok_or_else(no_such_member)?;
    let expires_at = deed.at + PASSWORD_RESET_LIFE;
    let reset = NewPasswordReset { token: token.digest(), expires_at };
    match members.issue_password_reset(&member, &reset, deed).await? {
        IssueOutcome::Issued => Ok(IssuedPasswordReset { email: member.email, token, expires_at }),
        IssueOutcome::NoSuchMember => Err(no_such_member()),
        IssueOutcome::NotAdministrator => Err(IssuePasswordResetError::NotAdministrator),
    }
}

/// The same for a colleague of the administrator.
pub async fn reset_password_of_colleague(
    members: &dyn MemberStore,
    administrator: ConfirmedMember<'_>,
    email: &EmailAddress,
    token: Token,
    deed: &Deed,
) -> Result<IssuedPasswordReset, IssuePasswordResetError> {
    issue_password_reset(members, administrator.organisation(), email, token, deed).await
}

/// Gives the member of an open link another password, and uses the link up. The member is signed out everywhere.
pub async fn reset_password(
    members: &dyn MemberStore,
    hasher: &dyn PasswordHasher,
    token: &Token,
    password: &PresentedPassword,
    salt: [u8; 16],
    origin: Origin,
) -> Result<(), ResetPasswordError> {
    let password = Password::new(password.expose()).map_err(ResetPasswordError::Invalid)?;
    // A stranger must not make the service hash.
    let member = members.password_reset(&token.digest(), origin.at).await?.ok_or(ResetPasswordError::NoReset)?;
    let waiter = Waiter::Guest(token.digest());
    let hash = hasher.hash(waiter, &password, salt).await.map_err(StoreError::from)?;
    // The link was handed on by somebody: it does not prove who opened it.
    let deed = origin.by(Actor::Stranger);
    match members.reset_password(&token.digest(), &member, &hash, &deed).await? {
        PasswordResetOutcome::Done => Ok(()),
        PasswordResetOutcome::Gone => Err(ResetPasswordError::NoReset),
    }
}
