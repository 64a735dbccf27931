//! Settings → Members: the list of members and open invitations, and inviting.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form};
use askama::Template;
use intake_domain::{
    EmailAddress, InviteError, MemberId, MemberRecord, MemberStore, OpenInvitation, PEOPLE_MAX, Role, SignedIn, Token,
    invite_member,
};
use intake_http::edge;
use serde::Deserialize;

use crate::BaseUrl;
use crate::mails::Mails;
use crate::members::invitation::invitation_path;
use crate::members::withdraw_invitation;
use crate::page::error::PageError;
use crate::page::moment::exact;
use crate::page::shell::{Shell, render};
use crate::page::visitor::{Administrator, Visitor};

/// Why somebody can be neither removed nor made a key manager.
pub(crate) const LAST_ADMINISTRATOR: &str = "The last administrator has to stay one: no one else could look after members. Make somebody else an administrator first.";

#[derive(Template)]
#[template(path = "members/list.html")]
struct MembersPage {
    shell: Shell,
    members: Vec<MemberRow>,
    invitations: Vec<InvitationRow>,
    is_second_factor_required: bool,
    alert: Option<String>,
    link: Option<String>,
    is_mailed: bool,
    invited: String,
    chosen: Role,
    email_error: Option<String>,
}

struct MemberRow {
    id: String,
    name: String,
    email: String,
    joined_at: String,
    role: Role,
    has_second_factor: bool,
    is_me: bool,
}

struct InvitationRow {
    email: String,
    role: Role,
    invited_by: String,
    expires_at: String,
    withdraw: String,
}

#[derive(Deserialize)]
pub(crate) struct InviteForm {
    form_token: String,
    email: String,
    /// None: an administrator.
    role: Option<String>,
}

pub(crate) async fn page(
    Administrator(visitor): Administrator,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    render(StatusCode::OK, &MembersPage::new(&visitor, members.as_ref()).await?)
}

pub(crate) async fn invite(
    Administrator(visitor): Administrator,
    form: Form<InviteForm>,
    members: Data<dyn MemberStore>,
    base: Data<BaseUrl>,
    mails: Data<Mails>,
) -> Result<HttpResponse, PageError> {
    let InviteForm { form_token, email: invited, role } = form.into_inner();
    visitor.assert_own_form(&form_token)?;
    let role = role.map_or(Ok(Role::Administrator), |role| role.parse()).map_err(|_| PageError::BadForm)?;
    let page = MembersPage { invited, chosen: role, ..MembersPage::new(&visitor, members.as_ref()).await? };
    let email: EmailAddress = match page.invited.parse() {
        Ok(email) => email,
        Err(error) => {
            return render(
                StatusCode::UNPROCESSABLE_ENTITY,
                &MembersPage { email_error: Some(format!("The email {error}.")), ..page },
            );
        }
    };
    let (organisation, token, deed) = (visitor.organisation(), Token::new(edge::random()), visitor.deed());
    match invite_member(members.as_ref(), organisation, email, role, token, &deed).await {
        Ok(made) => {
            let link = format!("{}{}", base.0, invitation_path(&made.token));
            let SignedIn { member, organisation_name, .. } = &visitor.signed_in;
            mails.invitation(&made.email, &member.name, organisation_name, &link, made.expires_at);
            // With the invitation that was just made.
            let now = MembersPage::new(&visitor, members.as_ref()).await?;
            let is_mailed = mails.are_sent();
            render(StatusCode::OK, &MembersPage { link: Some(link), is_mailed, invited: page.invited, ..now })
        }
        Err(InviteError::TooMany) => {
            let alert = Some(format!(
                "Your organisation has {PEOPLE_MAX} members and open invitations, which is the limit. Remove or withdraw one first."
            ));
            render(StatusCode::CONFLICT, &MembersPage { alert, ..page })
        }
        Err(InviteError::AlreadyMember(_)) => {
            let email_error = Some("This person is a member already.".to_owned());
            render(StatusCode::CONFLICT, &MembersPage { email_error, ..page })
        }
        Err(InviteError::NotAdministrator) => Err(PageError::AdministratorsOnly),
        Err(InviteError::NoSuchOrganisation(_)) => Err(PageError::NotFound),
        Err(InviteError::Store(error)) => Err(error.into()),
    }
}

/// The list, with why a change was not made.
pub(crate) async fn refuse(
    visitor: &Visitor,
    members: &dyn MemberStore,
    alert: &'static str,
) -> Result<HttpResponse, PageError> {
    let page = MembersPage { alert: Some(alert.to_owned()), ..MembersPage::new(visitor, members).await? };
    render(StatusCode::CONFLICT, &page)
}

impl MembersPage {
    async fn new(visitor: &Visitor, members: &dyn MemberStore) -> Result<Self, PageError> {
        let me = visitor.signed_in.member.id;
        let open = members.open_invitations(visitor.organisation(), edge::now()).await?;
        let invitations = open.into_iter().map(InvitationRow::from).collect();
        let found = members.members(visitor.organisation()).await?;
        let members = found.into_iter().map(|member| MemberRow::new(member, me)).collect();
        Ok(Self {
            shell: Shell::new("members", visitor),
            members,
            invitations,
            is_second_factor_required: visitor.signed_in.is_second_factor_required,
            alert: None,
            link: None,
            is_mailed: false,
            invited: String::new(),
            chosen: Role::Administrator,
            email_error: None,
        })
    }
}

impl MemberRow {
    fn new(member: MemberRecord, me: MemberId) -> Self {
        Self {
            id: member.id.to_string(),
            name: member.name,
            email: member.email,
            joined_at: exact(member.joined_at),
            role: member.role,
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
            role: invitation.role,
            invited_by: invitation.invited_by.unwrap_or_else(|| "an operator".to_owned()),
            expires_at: exact(invitation.expires_at),
        }
    }
}
