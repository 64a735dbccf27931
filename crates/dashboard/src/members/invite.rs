//! Members → Invite member, and inviting a person again: the page of a new invitation shows its link, or
//! says that it was mailed.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, SET_COOKIE};
use actix_web::web::{Form, Path};
use askama::Template;
use intake_domain::{
    EmailAddress, INVITATIONS_PER_HOUR_MAX, INVITATIONS_TO_ONE_MAX, InviteError, IssuedInvitation, LinkDelivery,
    OpenInvitation, PEOPLE_MAX, Role, SignedIn, Token, invite_member,
};
use intake_edge as edge;
use serde::Deserialize;

use crate::account::confirm::{Confirmation, INVITE, Proof, Waiting, confirm, go_on, waiting_invitation};
use crate::mails::Mails;
use crate::members::{MEMBERS, ROLES, open_invitation, path_of_invitation};
use crate::page::base_url::BaseUrl;
use crate::page::confirm::ConfirmPage;
use crate::page::cookie;
use crate::page::destination::Destination;
use crate::page::error::PageError;
use crate::page::form_token::OwnForm;
use crate::page::invitation_path::invitation_path;
use crate::page::moment::{Moment, exact};
use crate::page::part::{Members, Part};
use crate::page::shell::{Shell, render};
use crate::page::visitor::{Administrator, Visitor};

#[derive(Template)]
#[template(path = "members/invite.html")]
struct InvitePage {
    shell: Shell,
    alert: Option<String>,
    are_mailed: bool,
    chosen: Role,
    invite: InviteFields,
}

/// The form that invites a person.
struct InviteFields {
    email: String,
    role: Role,
    /// Fault of the address.
    error: Option<String>,
}

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
    /// None: the usual one.
    role: Option<String>,
    /// Given on the page that asks for a confirmation.
    #[serde(flatten)]
    proof: Proof,
}

pub(crate) async fn form(Administrator(visitor): Administrator) -> Result<HttpResponse, PageError> {
    let fields = visitor.draft().map(|draft| {
        let role = draft.field("role").parse().unwrap_or(InviteFields::USUAL_ROLE);
        InviteFields { email: draft.field("email"), role, error: None }
    });
    show_form(StatusCode::OK, &visitor, None, fields.unwrap_or_default())
}

fn show_form(
    status: StatusCode,
    visitor: &Visitor,
    alert: Option<String>,
    invite: InviteFields,
) -> Result<HttpResponse, PageError> {
    let are_mailed = visitor.shared::<Mails>()?.are_sent();
    render(
        status,
        &InvitePage { shell: Shell::new("members", visitor), alert, are_mailed, chosen: invite.role, invite },
    )
}

pub(crate) async fn invite(
    Administrator(visitor): Administrator,
    form: Form<InviteForm>,
    members: Part<dyn Members>,
) -> Result<HttpResponse, PageError> {
    let InviteForm { form_token, email: typed, role, proof } = form.into_inner();
    visitor.assert_own_form(&form_token)?;
    let role = role.map_or(Ok(InviteFields::USUAL_ROLE), |role| role.parse()).map_err(|_| PageError::BadForm)?;
    // Nothing else waits for a confirmation.
    if role != Role::Administrator || !proof.is_given() {
        assert_may_invite(&visitor, role)?;
        return make_typed(&visitor, members.as_ref(), InviteFields { email: typed, role, error: None }).await;
    }
    let (next, waiting) = (Destination::from(INVITE.to_owned()), Waiting::invitation(&typed, role));
    match confirm(&visitor, proof, next, Some(waiting)).await? {
        Confirmation::Confirmed(renewed) => invite_confirmed(visitor, renewed, typed).await,
        Confirmation::Refused(answer) => Ok(answer),
    }
}

/// Goes on after a confirmation: makes the invitation that waits for it, or leads to the page that was asked for.
pub(crate) async fn go_on_inviting(
    visitor: Visitor,
    next: &Destination,
    renewed: Token,
) -> Result<HttpResponse, PageError> {
    let SignedIn { member, .. } = &visitor.signed_in;
    let may_invite = member.role.administers() && !visitor.signed_in.must_turn_on_second_factor();
    match waiting_invitation(&visitor, next).filter(|_| may_invite) {
        Some(email) => invite_confirmed(visitor, renewed, email).await,
        None => Ok(go_on(next, &renewed)),
    }
}

/// Invites an administrator. The session goes on under this token.
async fn invite_confirmed(mut visitor: Visitor, renewed: Token, email: String) -> Result<HttpResponse, PageError> {
    // The pages that follow belong to the session as it goes on.
    let cookie = cookie::SESSION.set(&renewed);
    visitor.token = renewed;
    let fields = InviteFields { email, role: Role::Administrator, error: None };
    let made = make_typed(&visitor, visitor.shared::<dyn Members>()?, fields).await;
    if made.is_ok() {
        visitor.forget_draft();
    }
    // The confirmation counts, whatever became of the invitation.
    let mut answer = made.unwrap_or_else(HttpResponse::from_error);
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(answer)
}

async fn make_typed(visitor: &Visitor, members: &dyn Members, fields: InviteFields) -> Result<HttpResponse, PageError> {
    let email: EmailAddress = match fields.email.parse() {
        Ok(email) => email,
        Err(error) => {
            let fields = InviteFields { error: Some(format!("The email {error}.")), ..fields };
            return show_form(StatusCode::UNPROCESSABLE_ENTITY, visitor, None, fields);
        }
    };
    make(visitor, members, email, fields).await
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
                    "Your organisation has {PEOPLE_MAX} members and open invitations, which is the limit. Remove a \
                     member or withdraw an invitation first."
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
    show_form(status, visitor, alert, InviteFields { error, ..fields })
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
        expires_at: exact(made.expires_at, visitor.zone()),
        again: path_of_invitation(&made.token.digest(), "resend"),
    };
    render(StatusCode::OK, &page)
}

impl Default for InviteFields {
    fn default() -> Self {
        Self { email: String::new(), role: Self::USUAL_ROLE, error: None }
    }
}

impl InviteFields {
    /// Most people need no more.
    const USUAL_ROLE: Role = Role::KeyManager;
}
