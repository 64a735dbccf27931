//! The keys that a member created, which have to be replaced if the member leaves and knows them.

use intake_domain::{KeyRecord, MemberId, MemberRecord, list_keys};
use intake_edge as edge;

use crate::api_keys::LIST;
use crate::page::error::PageError;
use crate::page::part::Keys;
use crate::page::visitor::Visitor;

/// A working or paused key of the member, also one that the member made in the place of another.
pub(crate) struct MadeKey {
    pub(crate) link: String,
    pub(crate) name: String,
    pub(crate) hint: String,
    pub(crate) can_be_replaced: bool,
}

/// Keys that are not over and were created by the member, the newest first.
pub(crate) async fn made_keys(visitor: &Visitor, member: &MemberRecord) -> Result<Vec<MadeKey>, PageError> {
    let now = edge::now();
    let keys = visitor.shared::<dyn Keys>()?;
    let made_by = keys.made_by(visitor.organisation(), member.id).await?;
    let all = list_keys(keys, visitor.organisation()).await?;
    let is_made = |key: &KeyRecord| made_by.contains(&key.id) && !key.is_over(now);
    let made = |key: KeyRecord| MadeKey {
        link: format!("{LIST}/{}", key.id),
        hint: format!("…{}", key.hint),
        can_be_replaced: key.status(now).can_be_replaced(),
        name: key.name,
    };
    Ok(all.into_iter().rev().filter(is_made).map(made).collect())
}

/// The address of the list with the keys that this member created.
pub(crate) fn list_of(member: MemberId) -> String {
    format!("{LIST}?made_by={member}")
}
