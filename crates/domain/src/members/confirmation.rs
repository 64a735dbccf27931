//! The password, typed again by a member who is signed in: a browser that was left signed in is not enough for what takes
//! a [`ConfirmedMember`].

use crate::ids::OrganisationId;
use crate::members::hasher::{PasswordHasher, Waiter};
use crate::members::member::Member;
use crate::members::presented::PresentedPassword;
use crate::members::store::MemberStore;
use crate::sessions::store::SignedIn;
use crate::store_error::StoreError;

/// A member who is signed in and has just typed the right password. Made by [`confirm_password`] alone.
#[derive(Clone, Copy, Debug)]
pub struct ConfirmedMember<'a>(&'a SignedIn);

impl ConfirmedMember<'_> {
    pub(crate) fn member(&self) -> &Member {
        &self.0.member
    }

    pub(crate) fn organisation(&self) -> OrganisationId {
        self.0.member.organisation_id
    }

    pub(crate) fn must_have_second_factor(&self) -> bool {
        self.0.is_second_factor_required
    }
}

/// Why a member was not confirmed.
#[derive(Debug, thiserror::Error)]
pub enum ConfirmError {
    /// The password is not the member's.
    #[error("the password is wrong")]
    WrongPassword,
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Compares what was typed with the password of the member who is signed in.
pub async fn confirm_password<'a>(
    members: &dyn MemberStore,
    hasher: &dyn PasswordHasher,
    signed_in: &'a SignedIn,
    password: &PresentedPassword,
) -> Result<ConfirmedMember<'a>, ConfirmError> {
    let member = &signed_in.member;
    let hash = members.credentials(&member.email, None).await?.map(|credentials| credentials.password);
    let is_right = hasher.matches(Waiter::Member(member.id), password, hash).await.map_err(StoreError::from)?;
    if is_right { Ok(ConfirmedMember(signed_in)) } else { Err(ConfirmError::WrongPassword) }
}
