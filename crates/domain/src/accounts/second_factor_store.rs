//! The port to second factors and their recovery codes.

use async_trait::async_trait;

use crate::accounts::member::Member;
use crate::accounts::second_factor::TotpSecret;
use crate::audit::context::AuditContext;
use crate::email_address::EmailAddress;
use crate::ids::{MemberId, OrganisationId};
use crate::store_error::StoreError;
use crate::token::TokenDigest;

/// A second factor to be turned on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSecondFactor {
    /// The secret that the member's app was shown.
    pub secret: TotpSecret,
    /// The half minute of the code by which the member proved that the app has the secret: that code is used up.
    pub used_step: i64,
    /// The digests of the recovery codes.
    pub recovery_codes: Vec<TokenDigest>,
}

/// Reason why a second factor was not changed.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(not(feature = "workspace"), non_exhaustive)]
pub enum SecondFactorError {
    /// The code is not what the app shows.
    #[error("the code is wrong")]
    WrongCode,
    /// It is on already, or off already. Or the session was not shown the secret.
    #[error("the second factor is on already, or off already")]
    Unchanged,
    /// The organisation requires it of every member.
    #[error("the organisation requires a second factor")]
    Required,
    /// The organisation has no member with this email address.
    #[error("organisation {organisation} has no member {email}")]
    NoSuchMember {
        /// The organisation that was searched.
        organisation: OrganisationId,
        /// The address that no member of it has.
        email: EmailAddress,
    },
    /// The member belongs to another organisation, too, into which this administrator must not let anybody.
    #[error("an operator has to reset the second factor of this member")]
    SharedAccount,
    /// The acting member is neither the member nor an administrator.
    #[error("only administrators reset second factors")]
    NotAdministrator,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Second factors. Every change is recorded in the same transaction.
#[cfg_attr(feature = "mocks", mockall::automock)]
#[async_trait]
pub trait SecondFactorStore: Send + Sync {
    /// Returns how many recovery codes the member has left. None: the second factor is off.
    async fn recovery_codes_left(&self, member: MemberId) -> Result<Option<u32>, StoreError>;

    /// The secret that this session of the member is shown for an app: this one, unless it was shown another before.
    /// None: the second factor is on. Fails if the session has ended.
    async fn offer(
        &self,
        member: MemberId,
        session: &TokenDigest,
        secret: &TotpSecret,
    ) -> Result<Option<TotpSecret>, StoreError>;

    /// Turns on the member's second factor, unless one is on already or the session was shown another secret. Every
    /// change of second factors ends the member's other sessions and the waiting sign-ins.
    async fn turn_on(
        &self,
        member: &Member,
        factor: &NewSecondFactor,
        audit: &AuditContext,
    ) -> Result<(), SecondFactorError>;

    /// Turns off the member's second factor, if it is on. For another member, only an administrator or
    /// an operator may do it, and the member's passkeys are removed, too. An administrator cannot do it for a member of
    /// several organisations.
    async fn turn_off(&self, member: &Member, audit: &AuditContext) -> Result<(), SecondFactorError>;

    /// Replaces the member's recovery codes with these, if the second factor is on.
    async fn replace_recovery_codes(
        &self,
        member: &Member,
        codes: &[TokenDigest],
        audit: &AuditContext,
    ) -> Result<(), SecondFactorError>;
}
