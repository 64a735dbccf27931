//! The keys that a member created, which have to be replaced if the member leaves and knows them.

use intake_domain::{KeyRecord, MemberRecord, list_keys};
use intake_edge as edge;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

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

/// Keys that are not over and were created under the member's name, the newest first.
pub(crate) async fn made_keys(visitor: &Visitor, member: &MemberRecord) -> Result<Vec<MadeKey>, PageError> {
    let now = edge::now();
    let all = list_keys(visitor.shared::<dyn Keys>()?, visitor.organisation()).await?;
    let is_made = |key: &KeyRecord| key.created_by.as_deref() == Some(member.name.as_str()) && !key.is_over(now);
    let made = |key: KeyRecord| MadeKey {
        link: format!("{LIST}/{}", key.id),
        hint: format!("…{}", key.hint),
        can_be_replaced: key.status(now).can_be_replaced(),
        name: key.name,
    };
    Ok(all.into_iter().rev().filter(is_made).map(made).collect())
}

/// The address of the list with the keys that were created under this name.
pub(crate) fn list_of(name: &str) -> String {
    format!("{LIST}?q={}", utf8_percent_encode(name, NON_ALPHANUMERIC))
}
