//! Members: the list of members and open invitations.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use intake_domain::{MemberId, MemberRecord, MemberStore, OpenInvitation, Role, Zone};
use intake_edge as edge;

use crate::mails::Mails;
use crate::members::path_of_invitation;
use crate::page::error::PageError;
use crate::page::moment::{Moment, exact};
use crate::page::part::{Members, Part};
use crate::page::shell::{Shell, render};
use crate::page::visitor::{Auditor, Visitor};

/// Reason why a member can be neither removed nor given another role.
pub(crate) const LAST_ADMINISTRATOR: &str = "You're the only administrator. Make someone else an administrator first.";

/// Reason why only the operator of the service can let a member in again.
pub(crate) const OPERATORS_ONLY: &str = "Only the service operator can do this for this person. Nothing was changed.";

#[derive(Template)]
#[template(path = "members/list.html")]
struct MembersPage {
    shell: Shell,
    members: Vec<MemberRecord>,
    me: MemberId,
    invitations: Vec<InvitationRow>,
    alert: Option<&'static str>,
    are_mailed: bool,
}

struct InvitationRow {
    email: String,
    role: Role,
    invited_by: String,
    expires_at: Moment,
    withdraw: String,
    resend: String,
}

pub(crate) async fn page(Auditor(visitor): Auditor, members: Part<dyn Members>) -> Result<HttpResponse, PageError> {
    show_list(StatusCode::OK, &visitor, members.as_ref(), None).await
}

/// The list, with why a change was not made.
pub(crate) async fn refuse(
    visitor: &Visitor,
    members: &dyn MemberStore,
    alert: &'static str,
) -> Result<HttpResponse, PageError> {
    show_list(StatusCode::CONFLICT, visitor, members, Some(alert)).await
}

async fn show_list(
    status: StatusCode,
    visitor: &Visitor,
    members: &dyn MemberStore,
    alert: Option<&'static str>,
) -> Result<HttpResponse, PageError> {
    let open = visitor.shared::<dyn Members>()?.open_invitations(visitor.organisation(), edge::now()).await?;
    let page = MembersPage {
        shell: Shell::new("members", visitor),
        members: members.members(visitor.organisation()).await?,
        me: visitor.signed_in.member.id,
        invitations: open.into_iter().map(|invitation| InvitationRow::new(invitation, visitor.zone())).collect(),
        alert,
        are_mailed: visitor.shared::<Mails>()?.are_sent(),
    };
    render(status, &page)
}

impl InvitationRow {
    fn new(invitation: OpenInvitation, zone: Zone) -> Self {
        Self {
            withdraw: path_of_invitation(&invitation.token, "withdraw"),
            resend: path_of_invitation(&invitation.token, "resend"),
            email: invitation.email,
            role: invitation.role,
            invited_by: invitation.invited_by.unwrap_or_else(|| "the service operator".to_owned()),
            expires_at: exact(invitation.expires_at, zone),
        }
    }
}
