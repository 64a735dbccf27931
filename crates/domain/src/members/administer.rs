//! What administrators do to members and to the whole organisation. Whether they may is decided by the store, in the
//! transaction of the change: their role may be taken away at the same moment.

use crate::accounts::confirmation::ConfirmedMember;
use crate::accounts::member_store::{AdministerError, MemberStore};
use crate::accounts::role::Role;
use crate::audit::context::AuditContext;
use crate::ids::MemberId;
use crate::keys::key_age::KeyAge;
use crate::members::rules_store::RulesStore;
use crate::zone::Zone;

/// Removes a member of the administrator's organisation.
pub async fn remove_member(
    members: &dyn MemberStore,
    administrator: ConfirmedMember<'_>,
    member: MemberId,
    audit: &AuditContext,
) -> Result<(), AdministerError> {
    members.remove(administrator.organisation(), member, &administrator.confirm(audit)).await
}

/// Gives a member of the administrator's organisation another role.
pub async fn change_role(
    members: &dyn MemberStore,
    administrator: ConfirmedMember<'_>,
    member: MemberId,
    role: Role,
    audit: &AuditContext,
) -> Result<(), AdministerError> {
    members.change_role(administrator.organisation(), member, role, &administrator.confirm(audit)).await
}

/// Decides whether every member of the administrator's organisation must use two-step sign-in.
pub async fn require_second_factor(
    members: &dyn MemberStore,
    administrator: ConfirmedMember<'_>,
    is_required: bool,
    audit: &AuditContext,
) -> Result<(), AdministerError> {
    members.require_second_factor(administrator.organisation(), is_required, &administrator.confirm(audit)).await
}

/// Decides how long keys of the administrator's organisation may work.
pub async fn limit_key_age(
    rules: &dyn RulesStore,
    administrator: ConfirmedMember<'_>,
    age: Option<KeyAge>,
    audit: &AuditContext,
) -> Result<(), AdministerError> {
    rules.limit_key_age(administrator.organisation(), age, &administrator.confirm(audit)).await
}

/// Decides in which time zone members of the administrator's organisation see days and times.
pub async fn change_zone(
    rules: &dyn RulesStore,
    administrator: ConfirmedMember<'_>,
    zone: Zone,
    audit: &AuditContext,
) -> Result<(), AdministerError> {
    rules.change_zone(administrator.organisation(), zone, &administrator.confirm(audit)).await
}
