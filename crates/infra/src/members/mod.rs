//! Members of organisations: invitations, joining, roles and rules.

mod invitation_store;
pub(crate) mod joining;
mod key_age_store;
mod member_store;
mod zone_store;
