//! The people of an organisation who look after its keys: how they join, and what they may do.

pub(crate) mod administer;
pub(crate) mod invitation_store;
pub(crate) mod join_by_provider;
pub(crate) mod key_age_store;
pub(crate) mod manage;
pub(crate) mod zone_store;

pub use administer::{change_role, change_zone, limit_key_age, remove_member, require_second_factor};
pub use invitation_store::{
    Guest, INVITATIONS_PER_HOUR_MAX, INVITATIONS_TO_ONE_MAX, InvitationStore, InviteError, JoinOutcome, NewCredential,
    NewInvitation, NewMember, OpenInvitation, PEOPLE_MAX,
};
pub use join_by_provider::{ProviderJoinError, join_by_provider};
pub use key_age_store::KeyAgeStore;
pub use manage::{INVITATION_LIFE, IssuedInvitation, JoinError, JoinRequest, invite_member, join};
pub use zone_store::ZoneStore;

#[cfg(feature = "mocks")]
pub use {invitation_store::MockInvitationStore, key_age_store::MockKeyAgeStore, zone_store::MockZoneStore};
