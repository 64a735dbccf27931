//! Settings → Members: the list of members and open invitations, inviting and removing.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path};
use askama::Template;
use intake_domain::{
    EmailAddress, EmailAddressError, InviteError, MemberId, MemberRecord, MemberStore, OpenInvitation, RemoveOutcome,
    Token, invite_member,
};
use intake_http::edge;
use serde::Deserialize;

use crate::BaseUrl;
use crate::members::invitation::invitation_path;
use crate::members::{own_member, withdraw_invitation};
use crate::page::confirm::ConfirmPage;
use crate::page::error::PageError;
use crate::page::form_token::FormToken;
use crate::page::moment::exact;
use crate::page::shell::{Shell, redirect, render};
use crate::page::visitor::Visitor;

#[derive(Template)]
#[template(path = "members/list.html")]
struct MembersPage {
    shell: Shell,
    members: Vec<MemberRow>,
    invitations: Vec<InvitationRow>,
    alert: Option<&'static str>,
    link: Option<String>,
    invited: String,
    email_error: Option<EmailAddressError>,
}

struct MemberRow {
    id: String,
    name: String,
    email: String,
    joined_at: String,
    has_second_factor: bool,
    is_me: bool,
}

struct InvitationRow {
    email: String,
    invited_by: String,
    expires_at: String,
    withdraw: String,
}

#[derive(Deserialize)]
pub(crate) struct InviteForm {
    form_token: String,
    email: String,
}

pub(crate) async fn page(visitor: Visitor, members: Data<dyn MemberStore>) -> Result<HttpResponse, PageError> {
    render(StatusCode::OK, &MembersPage::new(&visitor, members.as_ref()).await?)
}

pub(crate) async fn invite(
    visitor: Visitor,
    form: Form<InviteForm>,
    members: Data<dyn MemberStore>,
    base: Data<BaseUrl>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let invited = form.into_inner().email;
    let email: EmailAddress = match invited.parse() {
        Ok(email) => email,
        Err(error) => {
            let page = MembersPage::new(&visitor, members.as_ref()).await?;
            let page = MembersPage { email_error: Some(error), invited, ..page };
            return render(StatusCode::UNPROCESSABLE_ENTITY, &page);
        }
    };
    let token = Token::new(edge::random());
    let made = match invite_member(members.as_ref(), visitor.organisation(), email, token, &visitor.deed()).await {
        Ok(made) => made,
        Err(InviteError::TooMany) => {
            let alert = Some(
                "Your organisation has reached its limit of members and open invitations. Remove or withdraw one first.",
            );
            let page = MembersPage { alert, invited, ..MembersPage::new(&visitor, members.as_ref()).await? };
            return render(StatusCode::CONFLICT, &page);
        }
        Err(InviteError::NoSuchOrganisation(_)) => return Err(PageError::NotFound),
        Err(InviteError::Store(error)) => return Err(error.into()),
    };
    let link = Some(format!("{}{}", base.0, invitation_path(&made.token)));
    let page = MembersPage { link, invited, ..MembersPage::new(&visitor, members.as_ref()).await? };
    render(StatusCode::OK, &page)
}

pub(crate) async fn confirm_remove(
    visitor: Visitor,
    id: Path<String>,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    let member = own_member(&visitor, &id, members.as_ref()).await?;
    let page = ConfirmPage {
        shell: Shell::new("members", &visitor),
        title: format!("Remove {}?", member.name),
        text: "Their sessions and the invitations they made end at once. The API keys they created keep working.",
        action: format!("/settings/members/{}/remove", member.id),
        button: "Remove member",
        back: "/settings/members",
    };
    render(StatusCode::OK, &page)
}

pub(crate) async fn remove(
    visitor: Visitor,
    id: Path<String>,
    form: Form<FormToken>,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let id: MemberId = id.parse().map_err(|_| PageError::NotFound)?;
    match members.remove(visitor.organisation(), id, &visitor.deed()).await? {
        RemoveOutcome::Removed => Ok(redirect("/settings/members")),
        RemoveOutcome::NoSuchMember => Err(PageError::NotFound),
        RemoveOutcome::LastMember => {
            let alert = Some(
                "The last member cannot be removed: no one could look after the keys. Invite another member first.",
            );
            let page = MembersPage { alert, ..MembersPage::new(&visitor, members.as_ref()).await? };
            render(StatusCode::CONFLICT, &page)
        }
    }
}

impl MembersPage {
    async fn new(visitor: &Visitor, members: &dyn MemberStore) -> Result<Self, PageError> {
        let me = visitor.signed_in.member.id;
        let open = members.open_invitations(visitor.organisation(), edge::now()).await?;
        let invitations = open.into_iter().map(InvitationRow::from).collect();
        let found = members.members(visitor.organisation()).await?;
        let members = found.into_iter().map(|member| MemberRow::new(member, me)).collect();
        let shell = Shell::new("members", visitor);
        Ok(Self { shell, members, invitations, alert: None, link: None, invited: String::new(), email_error: None })
    }
}

impl MemberRow {
    fn new(member: MemberRecord, me: MemberId) -> Self {
        Self {
            id: member.id.to_string(),
            name: member.name,
            email: member.email,
            joined_at: exact(member.joined_at),
            has_second_factor: member.has_second_factor,
            is_me: member.id == me,
        }
    }
}

impl From<OpenInvitation> for InvitationRow {
    fn from(invitation: OpenInvitation) -> Self {
        Self {
            withdraw: withdraw_invitation::path(&invitation),
            email: invitation.email,
            invited_by: invitation.invited_by.unwrap_or_else(|| "an operator".to_owned()),
            expires_at: exact(invitation.expires_at),
        }
    }
}
