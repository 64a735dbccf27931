//! Members, and how a guest joins.

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use intake_domain::{InvitationStore, MemberId, MemberRecord, OpenInvitation, Role, TokenDigest};
use intake_edge as edge;

use crate::page::error::PageError;
use crate::page::part::Members;
use crate::page::visitor::{Administrator, Auditor, Found, Visitor};

pub(crate) mod end_sessions;
pub(crate) mod invitation;
pub(crate) mod invitation_provider;
pub(crate) mod invite;
pub(crate) mod list;
pub(crate) mod made_keys;
pub(crate) mod member;
pub(crate) mod remove;
pub(crate) mod reset_password;
pub(crate) mod reset_second_factor;
pub(crate) mod role;
pub(crate) mod routes;
pub(crate) mod withdraw_invitation;

/// The list of members.
pub(crate) const MEMBERS: &str = "/settings/members";

/// Returns what a member with this role is.
pub(crate) fn with_article(role: Role) -> &'static str {
    match role {
        Role::Administrator => "an administrator",
        Role::KeyManager => "a key manager",
        Role::Auditor => "an auditor",
    }
}

/// Every role as it is offered, the usual one first.
pub(crate) const ROLES: [Role; 3] = [Role::KeyManager, Role::Auditor, Role::Administrator];

/// Returns what a member with this role can do.
pub(crate) fn duty(role: Role) -> &'static str {
    match role {
        Role::Administrator => "Manages members and keys, and sees activity. Can do everything.",
        Role::KeyManager => "Creates, replaces, pauses and revokes keys. Can't see members or activity.",
        Role::Auditor => "Sees keys, members and activity, and changes nothing.",
    }
}

/// The member in the path, who belongs to the organisation of the visitor, an administrator.
pub(crate) struct OwnMember {
    pub(crate) visitor: Visitor,
    pub(crate) member: MemberRecord,
    /// True if nobody else could manage members.
    pub(crate) is_last_administrator: bool,
}

impl FromRequest for OwnMember {
    type Error = PageError;
    type Future = Found<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (visitor, request) = (Administrator::from_request(request, payload), request.clone());
        Box::pin(async move { OwnMember::asked_for(visitor.await?.0, &request).await })
    }
}

/// The same for a visitor who may only look.
pub(crate) struct SeenMember(pub(crate) OwnMember);

impl FromRequest for SeenMember {
    type Error = PageError;
    type Future = Found<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (visitor, request) = (Auditor::from_request(request, payload), request.clone());
        Box::pin(async move { OwnMember::asked_for(visitor.await?.0, &request).await.map(Self) })
    }
}

impl AsRef<Visitor> for OwnMember {
    fn as_ref(&self) -> &Visitor {
        &self.visitor
    }
}

impl OwnMember {
    async fn asked_for(visitor: Visitor, request: &HttpRequest) -> Result<Self, PageError> {
        let id: MemberId = request.match_info().query("member").parse().map_err(|_| PageError::NotFound)?;
        let all = visitor.shared::<dyn Members>()?.members(visitor.organisation()).await?;
        let administrators = all.iter().filter(|member| member.role.administers()).count();
        let member = all.into_iter().find(|member| member.id == id).ok_or(PageError::NotFound)?;
        let is_last_administrator = member.role.administers() && administrators == 1;
        Ok(Self { visitor, member, is_last_administrator })
    }

    pub(crate) fn is_me(&self) -> bool {
        self.member.id == self.visitor.signed_in.member.id
    }
}

/// An open invitation of the visitor's own organisation, by the digest in its path.
pub(crate) async fn open_invitation(
    visitor: &Visitor,
    digest: &str,
    invitations: &dyn InvitationStore,
) -> Result<OpenInvitation, PageError> {
    let token = TokenDigest::from_hexadecimal(digest).ok_or(PageError::NotFound)?;
    let open = invitations.open_invitations(visitor.organisation(), edge::now()).await?;
    open.into_iter().find(|invitation| invitation.token == token).ok_or(PageError::NotFound)
}

/// The path of a page about an open invitation.
pub(crate) fn path_of_invitation(token: &TokenDigest, page: &str) -> String {
    format!("{MEMBERS}/invitations/{}/{page}", token.to_hexadecimal())
}
