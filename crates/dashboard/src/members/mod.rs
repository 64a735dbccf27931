//! Settings → Members, and how a guest joins.

use intake_domain::{MemberId, MemberRecord, MemberStore};

use crate::page::error::PageError;
use crate::page::visitor::Visitor;

pub(crate) mod invitation;
pub(crate) mod list;
pub(crate) mod remove;
pub(crate) mod reset_password;
pub(crate) mod role;
pub(crate) mod two_step_sign_in;
pub(crate) mod withdraw_invitation;

/// A member of the visitor's own organisation; one of any other counts as not found.
pub(crate) async fn own_member(
    visitor: &Visitor,
    id: &str,
    members: &dyn MemberStore,
) -> Result<MemberRecord, PageError> {
    let id: MemberId = id.parse().map_err(|_| PageError::NotFound)?;
    let all = members.members(visitor.organisation()).await?;
    all.into_iter().find(|member| member.id == id).ok_or(PageError::NotFound)
}
