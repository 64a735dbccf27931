//! The people of an organisation who look after its keys: how they join, and what they may do.

pub(crate) mod administer;
pub(crate) mod invitation_store;
pub(crate) mod join_by_provider;
pub(crate) mod manage;
pub(crate) mod rules_store;

pub use administer::{change_role, change_zone, limit_key_age, remove_member, require_second_factor};
pub use invitation_store::{
    Guest, INVITATIONS_PER_HOUR_MAX, INVITATIONS_TO_ONE_MAX, InvitationStore, InviteError, JoinOutcome, NewCredential,
    NewInvitation, NewMember, OpenInvitation, PEOPLE_MAX,
};
pub use join_by_provider::{ProviderJoinError, join_by_provider};
pub use manage::{INVITATION_LIFE, IssuedInvitation, JoinError, JoinRequest, invite_member, join};
pub use rules_store::RulesStore;

#[cfg(feature = "mocks")]
pub use {invitation_store::MockInvitationStore, rules_store::MockRulesStore};
