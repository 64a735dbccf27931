//! Settings → Members, and how a guest joins.

pub(crate) mod invitation;
pub(crate) mod list;
pub(crate) mod reset_password;
pub(crate) mod withdraw_invitation;
