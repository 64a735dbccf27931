//! How a member turns a second factor on and off. Each change asks for the password, so that a browser left signed in is
//! not enough.

use crate::audit::action::Deed;
use crate::email_address::EmailAddress;
use crate::ids::OrganisationId;
use crate::members::confirmation::ConfirmedMember;
use crate::members::presented::PresentedCode;
use crate::members::second_factor::{RecoveryCode, TotpSecret};
use crate::members::store::{MemberStore, NewSecondFactor, SecondFactorOutcome};
use crate::sessions::token::TokenDigest;
use crate::store_error::StoreError;

/// Why a second factor was not changed.
#[derive(Debug, thiserror::Error)]
pub enum SecondFactorError {
    /// The code is not what the app shows.
    #[error("the code is wrong")]
    WrongCode,
    /// It is on already, or off already.
    #[error("the second factor is on already, or off already")]
    Unchanged,
    /// The organisation requires it of every member.
    #[error("the organisation requires a second factor")]
    Required,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an operator could not reset a member's second factor.
#[derive(Debug, thiserror::Error)]
pub enum ResetSecondFactorError {
    /// The organisation has no member with this email address.
    #[error("organisation {organisation} has no member {email}")]
    NoSuchMember {
        /// The organisation that was searched.
        organisation: OrganisationId,
        /// The address that no member of it has.
        email: EmailAddress,
    },
    /// The member already signs in with the password alone.
    #[error("the second factor is off already")]
    AlreadyOff,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The form that a member fills in to turn the second factor on.
#[derive(Debug)]
pub struct SecondFactorRequest<'a> {
    /// The secret that the app was shown.
    pub secret: TotpSecret,
    /// The code that the app shows, as typed.
    pub code: &'a PresentedCode,
    /// The recovery codes that the member will be shown.
    pub recovery_codes: &'a [RecoveryCode],
}

/// Turns the second factor on: the member signs in with a password and a code.
pub async fn turn_on_second_factor(
    members: &dyn MemberStore,
    member: ConfirmedMember<'_>,
    request: SecondFactorRequest<'_>,
    deed: &Deed,
) -> Result<(), SecondFactorError> {
    let SecondFactorRequest { secret, code, recovery_codes } = request;
    let used_step = secret.step_of(code, deed.at).ok_or(SecondFactorError::WrongCode)?;
    let factor = NewSecondFactor { secret, used_step, recovery_codes: digests(recovery_codes) };
    changed(members.turn_on(member.member(), &factor, deed).await?)
}

/// Turns the second factor off: the member signs in with the password alone.
pub async fn turn_off_second_factor(
    members: &dyn MemberStore,
    member: ConfirmedMember<'_>,
    deed: &Deed,
) -> Result<(), SecondFactorError> {
    if member.must_have_second_factor() {
        return Err(SecondFactorError::Required);
    }
    changed(members.turn_off(member.member(), deed).await?)
}

/// Replaces the member's recovery codes.
pub async fn replace_recovery_codes(
    members: &dyn MemberStore,
    member: ConfirmedMember<'_>,
    codes: &[RecoveryCode],
    deed: &Deed,
) -> Result<(), SecondFactorError> {
    changed(members.replace_recovery_codes(member.member(), &digests(codes), deed).await?)
}

/// Turns off the second factor of a member who has lost both the app and the recovery codes. For operators.
pub async fn reset_second_factor(
    members: &dyn MemberStore,
    organisation: OrganisationId,
    email: &EmailAddress,
    deed: &Deed,
) -> Result<(), ResetSecondFactorError> {
    let member = members.credentials(email, None).await?.map(|credentials| credentials.member);
    let Some(member) = member.filter(|member| member.organisation_id == organisation) else {
        return Err(ResetSecondFactorError::NoSuchMember { organisation, email: email.clone() });
    };
    match members.turn_off(&member, deed).await? {
        SecondFactorOutcome::Changed => Ok(()),
        SecondFactorOutcome::Unchanged => Err(ResetSecondFactorError::AlreadyOff),
    }
}

fn digests(codes: &[RecoveryCode]) -> Vec<TokenDigest> {
    codes.iter().map(RecoveryCode::digest).collect()
}

fn changed(outcome: SecondFactorOutcome) -> Result<(), SecondFactorError> {
    match outcome {
        SecondFactorOutcome::Changed => Ok(()),
        SecondFactorOutcome::Unchanged => Err(SecondFactorError::Unchanged),
    }
}
