//! How a member turns a second factor on and off. Each change asks for the password, so that a browser left signed in
//! is not enough.

use crate::accounts::confirmation::ConfirmedMember;
use crate::accounts::member_store::MemberStore;
use crate::accounts::presented::PresentedCode;
use crate::accounts::second_factor::{RecoveryCode, TotpSecret};
use crate::accounts::second_factor_store::{NewSecondFactor, SecondFactorError, SecondFactorStore};
use crate::audit::context::AuditContext;
use crate::email_address::EmailAddress;
use crate::ids::OrganisationId;
use crate::store_error::StoreError;
use crate::token::TokenDigest;

/// The form that a member fills in to turn the second factor on.
#[derive(Debug)]
pub struct SecondFactorRequest<'a> {
    /// The secret of [`offer_second_factor`].
    pub secret: TotpSecret,
    /// The code that the app shows, as typed.
    pub code: &'a PresentedCode,
    /// The recovery codes that the member will be shown.
    pub recovery_codes: &'a [RecoveryCode],
}

/// The secret that the member's session is shown for an app until the second factor is on: one of these random bytes,
/// unless it was shown another before. None: the second factor is on.
pub async fn offer_second_factor(
    factors: &dyn SecondFactorStore,
    member: &ConfirmedMember<'_>,
    random: [u8; 20],
) -> Result<Option<TotpSecret>, StoreError> {
    factors.offer(member.member().id, &member.session(), &TotpSecret::new(random)).await
}

/// Turns the second factor on: the member signs in with a password and a code.
pub async fn turn_on_second_factor(
    factors: &dyn SecondFactorStore,
    member: ConfirmedMember<'_>,
    request: SecondFactorRequest<'_>,
    audit: &AuditContext,
) -> Result<(), SecondFactorError> {
    let SecondFactorRequest { secret, code, recovery_codes } = request;
    let used_step = secret.step_of(code, audit.at).ok_or(SecondFactorError::WrongCode)?;
    let factor = NewSecondFactor { secret, used_step, recovery_codes: digests(recovery_codes) };
    factors.turn_on(member.member(), &factor, &member.confirm(audit)).await
}

/// Turns the second factor off: the member signs in with the password alone.
pub async fn turn_off_second_factor(
    factors: &dyn SecondFactorStore,
    member: ConfirmedMember<'_>,
    audit: &AuditContext,
) -> Result<(), SecondFactorError> {
    if member.must_have_second_factor() {
        return Err(SecondFactorError::Required);
    }
    factors.turn_off(member.member(), &member.confirm(audit)).await
}

/// Replaces the member's recovery codes.
pub async fn replace_recovery_codes(
    factors: &dyn SecondFactorStore,
    member: ConfirmedMember<'_>,
    codes: &[RecoveryCode],
    audit: &AuditContext,
) -> Result<(), SecondFactorError> {
    factors.replace_recovery_codes(member.member(), &digests(codes), &member.confirm(audit)).await
}

/// Turns off the second factor of a member who has lost both the app and the recovery codes. For operators.
pub async fn reset_second_factor(
    members: &dyn MemberStore,
    factors: &dyn SecondFactorStore,
    organisation: OrganisationId,
    email: &EmailAddress,
    audit: &AuditContext,
) -> Result<(), SecondFactorError> {
    let Some(member) = members.member(organisation, email).await? else {
        return Err(SecondFactorError::NoSuchMember { organisation, email: email.clone() });
    };
    factors.turn_off(&member, audit).await
}

/// The same for a colleague of the administrator.
pub async fn reset_second_factor_of_colleague(
    members: &dyn MemberStore,
    factors: &dyn SecondFactorStore,
    administrator: ConfirmedMember<'_>,
    email: &EmailAddress,
    audit: &AuditContext,
) -> Result<(), SecondFactorError> {
    reset_second_factor(members, factors, administrator.organisation(), email, &administrator.confirm(audit)).await
}

fn digests(codes: &[RecoveryCode]) -> Vec<TokenDigest> {
    codes.iter().map(RecoveryCode::digest).collect()
}
