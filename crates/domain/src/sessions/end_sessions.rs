//! How members end sessions: their own ones elsewhere, and, as administrators, those of a colleague. Each needs a
//! confirmation: a browser that was left signed in must not sign others out.

use crate::accounts::confirmation::ConfirmedMember;
use crate::accounts::member_store::{AdministerError, MemberStore};
use crate::accounts::session_store::SessionStore;
use crate::audit::context::AuditContext;
use crate::ids::MemberId;
use crate::store_error::StoreError;
use crate::token::TokenDigest;

/// Ends one of the member's own sessions. Returns false if the member has no such session.
pub async fn end_session(
    sessions: &dyn SessionStore,
    member: ConfirmedMember<'_>,
    session: &TokenDigest,
    audit: &AuditContext,
) -> Result<bool, StoreError> {
    sessions.end_one(member.member(), session, &member.confirm(audit)).await
}

/// Ends every session of the member but the one in which they confirmed.
pub async fn end_other_sessions(
    sessions: &dyn SessionStore,
    member: ConfirmedMember<'_>,
    audit: &AuditContext,
) -> Result<(), StoreError> {
    sessions.end_others(member.member(), &member.confirm(audit)).await
}

/// Signs a colleague of the administrator out of their organisation, wherever they are signed in.
pub async fn end_sessions_of_colleague(
    members: &dyn MemberStore,
    administrator: ConfirmedMember<'_>,
    member: MemberId,
    audit: &AuditContext,
) -> Result<(), AdministerError> {
    members.end_sessions(administrator.organisation(), member, &administrator.confirm(audit)).await
}
