//! Inviting a person, and inviting them again: the page of a new invitation shows its link, or says that it was mailed.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Form, Path};
use askama::Template;
use intake_domain::{
    EmailAddress, INVITATIONS_PER_HOUR_MAX, INVITATIONS_TO_ONE_MAX, InviteError, IssuedInvitation, LinkDelivery,
    OpenInvitation, PEOPLE_MAX, Role, Token, invite_member,
};
use intake_edge as edge;
use serde::Deserialize;

use crate::mails::Mails;
use crate::members::list::{InviteFields, show_list};
use crate::members::{MEMBERS, open_invitation, path_of_invitation};
use crate::page::base_url::BaseUrl;
use crate::page::confirm::ConfirmPage;
use crate::page::error::PageError;
use crate::page::form_token::OwnForm;
use crate::page::invitation_path::invitation_path;
use crate::page::moment::{Moment, exact};
use crate::page::part::{Members, Part};
use crate::page::shell::{Shell, render};
use crate::page::visitor::{Administrator, Visitor};

#[derive(Template)]
#[template(path = "members/invited.html")]
struct InvitedPage {
    shell: Shell,
    email: String,
    role: Role,
    /// None: it was mailed.
    link: Option<String>,
    expires_at: Moment,
    /// Address at which another link is made.
    again: String,
}

#[derive(Deserialize)]
pub(crate) struct InviteForm {
    form_token: String,
    email: String,
    /// None: an administrator.
    role: Option<String>,
}

pub(crate) async fn invite(
    Administrator(visitor): Administrator,
    form: Form<InviteForm>,
    members: Part<dyn Members>,
) -> Result<HttpResponse, PageError> {
    let InviteForm { form_token, email: typed, role } = form.into_inner();
    visitor.assert_own_form(&form_token)?;
    let role = role.map_or(Ok(Role::Administrator), |role| role.parse()).map_err(|_| PageError::BadForm)?;
    assert_may_invite(&visitor, role)?;
    let fields = InviteFields { email: typed, role, error: None };
    let email: EmailAddress = match fields.email.parse() {
        Ok(email) => email,
        Err(error) => {
            let fields = InviteFields { error: Some(format!("The email {error}.")), ..fields };
            return show_list(StatusCode::UNPROCESSABLE_ENTITY, &visitor, members.as_ref(), None, fields).await;
        }
    };
    make(&visitor, members.as_ref(), email, fields).await
}

pub(crate) async fn ask_again(
    Administrator(visitor): Administrator,
    invitation: Path<String>,
    members: Part<dyn Members>,
) -> Result<HttpResponse, PageError> {
    let invitation = open_invitation(&visitor, &invitation, members.as_ref()).await?;
    assert_may_invite(&visitor, invitation.role)?;
    let are_mailed = visitor.shared::<Mails>()?.are_sent();
    ConfirmPage {
        shell: Shell::new("members", &visitor),
        title: format!("Invite {} again?", invitation.email),
        text: "You'll get a new link, which works for 72 hours. The earlier link stops working.",
        action: path_of_invitation(&invitation.token, "resend"),
        button: if are_mailed { "Send again" } else { "Create new link" },
        is_danger: false,
        back: MEMBERS,
    }
    .ask()
}

pub(crate) async fn again(
    OwnForm(Administrator(visitor)): OwnForm<Administrator>,
    invitation: Path<String>,
    members: Part<dyn Members>,
) -> Result<HttpResponse, PageError> {
    let OpenInvitation { email, role, .. } = open_invitation(&visitor, &invitation, members.as_ref()).await?;
    assert_may_invite(&visitor, role)?;
    let address = email.parse().map_err(|_| PageError::NotFound)?;
    make(&visitor, members.as_ref(), address, InviteFields { email, role, error: None }).await
}

/// An administrator can do everything, so a browser that was left signed in is not enough to invite one.
fn assert_may_invite(visitor: &Visitor, role: Role) -> Result<(), PageError> {
    match role {
        Role::Administrator => visitor.confirmed().map(drop),
        Role::KeyManager | Role::Auditor => Ok(()),
    }
}

async fn make(
    visitor: &Visitor,
    members: &dyn Members,
    email: EmailAddress,
    fields: InviteFields,
) -> Result<HttpResponse, PageError> {
    let are_mailed = visitor.shared::<Mails>()?.are_sent();
    let delivery = if are_mailed { LinkDelivery::Mailed } else { LinkDelivery::Shown };
    let (role, token) = (fields.role, Token::new(edge::random()));
    let (status, alert, error) =
        match invite_member(members, visitor.organisation(), email, role, token, delivery, &visitor.audit()).await {
            Ok(made) => return show(visitor, role, &made),
            Err(InviteError::TooMany) => {
                let alert = format!(
                    "Your organisation has {PEOPLE_MAX} members and open invitations, which is the limit. Remove or \
                     revoke one first."
                );
                (StatusCode::CONFLICT, Some(alert), None)
            }
            Err(InviteError::TooManyLately) => {
                let alert = format!(
                    "Your organisation makes at most {INVITATIONS_PER_HOUR_MAX} invitations an hour, and \
                     {INVITATIONS_TO_ONE_MAX} a day to one person. Try again later."
                );
                (StatusCode::TOO_MANY_REQUESTS, Some(alert), None)
            }
            Err(InviteError::AlreadyMember(_)) => {
                (StatusCode::CONFLICT, None, Some("This person is already a member.".to_owned()))
            }
            Err(InviteError::NotAdministrator) => return Err(PageError::AdministratorsOnly),
            Err(InviteError::NoSuchOrganisation(_) | InviteError::OrganisationClosed(_)) => {
                return Err(PageError::NotFound);
            }
            Err(InviteError::Store(error)) => return Err(error.into()),
        };
    show_list(status, visitor, members, alert, InviteFields { error, ..fields }).await
}

fn show(visitor: &Visitor, role: Role, made: &IssuedInvitation) -> Result<HttpResponse, PageError> {
    let mails = visitor.shared::<Mails>()?;
    let link = format!("{}{}", visitor.shared::<BaseUrl>()?.0, invitation_path(&made.token));
    mails.invitation(&made.email, &visitor.signed_in, &link, made.expires_at);
    let page = InvitedPage {
        shell: Shell::new("members", visitor),
        email: made.email.to_string(),
        role,
        // A guest who joins by a mailed link has proved that the mailbox is theirs.
        link: (!mails.are_sent()).then_some(link),
        expires_at: exact(made.expires_at),
        again: path_of_invitation(&made.token.digest(), "resend"),
    };
    render(StatusCode::OK, &page)
}
