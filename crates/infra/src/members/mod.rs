//! Members of organisations: invitations, joining, roles and rules.

mod invitation_store;
pub(crate) mod joining;
mod member_store;
mod rules_store;
