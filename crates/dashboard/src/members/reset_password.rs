//! Members → Reset password: a one-time link for another member, who forgot the password. Members change
//! their own on the account page, which asks for the current one.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use intake_domain::{EmailAddress, IssuePasswordResetError, LinkDelivery, Token, reset_password_of_colleague};
use intake_edge as edge;

use crate::account::reset_password::reset_password_path;
use crate::mails::Mails;
use crate::members::list::{OPERATORS_ONLY, refuse};
use crate::members::{MEMBERS, OwnMember};
use crate::page::base_url::BaseUrl;
use crate::page::confirm::ConfirmPage;
use crate::page::error::PageError;
use crate::page::form_token::OwnForm;
use crate::page::moment::{Moment, exact};
use crate::page::part::{Members, Part};
use crate::page::passwords::PasswordsOn;
use crate::page::shell::{Shell, redirect, render};

const TOO_MANY: &str = "This member got five links within a day, which is the limit. Try again tomorrow.";

#[derive(Template)]
#[template(path = "members/reset_password.html")]
struct ResetLinkPage {
    shell: Shell,
    name: String,
    email: String,
    /// None: it was mailed.
    link: Option<String>,
    expires_at: Moment,
}

pub(crate) async fn ask(_: PasswordsOn, own: OwnMember) -> Result<HttpResponse, PageError> {
    if own.is_me() {
        return Ok(redirect("/settings/account/password"));
    }
    own.visitor.assert_confirmed()?;
    confirm_page(&own).ask()
}

pub(crate) async fn create(
    _: PasswordsOn,
    OwnForm(own): OwnForm<OwnMember>,
    members: Part<dyn Members>,
    base: Part<BaseUrl>,
    mails: Part<Mails>,
) -> Result<HttpResponse, PageError> {
    if own.is_me() {
        return Ok(redirect("/settings/account/password"));
    }
    let OwnMember { visitor, member, .. } = &own;
    let confirmed = visitor.confirmed()?;
    let email: EmailAddress = member.email.parse().map_err(|_| PageError::NotFound)?;
    let delivery = if mails.are_sent() { LinkDelivery::Mailed } else { LinkDelivery::Shown };
    let (members, token) = (members.as_ref(), Token::new(edge::random()));
    match reset_password_of_colleague(members, members, confirmed, &email, token, delivery, &visitor.audit()).await {
        Ok(made) => {
            let link = format!("{}{}", base.0, reset_password_path(&made.token));
            let by = &visitor.signed_in.member.name;
            mails.password_reset(visitor.organisation(), &made.email, Some(by), &link, made.expires_at, visitor.zone());
            let page = ResetLinkPage {
                shell: Shell::new("members", visitor),
                name: member.name.clone(),
                email: made.email.to_string(),
                // Anyone who has the link can sign in as the member, so the link is mailed to the member alone.
                link: (!mails.are_sent()).then_some(link),
                expires_at: exact(made.expires_at, visitor.zone()),
            };
            render(StatusCode::OK, &page)
        }
        Err(IssuePasswordResetError::NoSuchMember { .. }) => Err(PageError::NotFound),
        Err(IssuePasswordResetError::SharedAccount) => refuse(visitor, members, OPERATORS_ONLY).await,
        Err(IssuePasswordResetError::NotAdministrator) => Err(PageError::AdministratorsOnly),
        Err(IssuePasswordResetError::TooManyLately) => refuse(visitor, members, TOO_MANY).await,
        Err(IssuePasswordResetError::Store(error)) => Err(error.into()),
    }
}

fn confirm_page(OwnMember { visitor, member, .. }: &OwnMember) -> ConfirmPage<'static> {
    ConfirmPage {
        shell: Shell::new("members", visitor),
        title: format!("Reset {}'s password?", member.name),
        text: "You'll get a link to send them. Their current password keeps working until they use it.",
        action: format!("/settings/members/{}/reset-password", member.id),
        button: "Create reset link",
        is_danger: false,
        back: MEMBERS,
    }
}
