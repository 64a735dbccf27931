//! Settings → Members → Reset password: a one-time link for another member, who forgot the password. Members change their
//! own on the account page, which asks for the current one.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path};
use askama::Template;
use intake_domain::{EmailAddress, IssuePasswordResetError, MemberStore, Token, issue_password_reset};
use intake_http::edge;

use crate::BaseUrl;
use crate::account::reset_password::reset_password_path;
use crate::members::own_member;
use crate::page::confirm::ConfirmPage;
use crate::page::error::PageError;
use crate::page::form_token::FormToken;
use crate::page::moment::exact;
use crate::page::shell::{Shell, redirect, render};
use crate::page::visitor::Visitor;

#[derive(Template)]
#[template(path = "members/reset_password.html")]
struct ResetLinkPage {
    shell: Shell,
    name: String,
    email: String,
    link: String,
    expires_at: String,
}

pub(crate) async fn confirm(
    visitor: Visitor,
    id: Path<String>,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    let member = own_member(&visitor, &id, members.as_ref()).await?;
    if member.id == visitor.signed_in.member.id {
        return Ok(redirect("/settings/account/password"));
    }
    let page = ConfirmPage {
        shell: Shell::new("members", &visitor),
        title: format!("Reset the password of {}?", member.name),
        text: "You get a link to send to them, by which they choose a new password. Until they do, the old one works.",
        action: format!("/settings/members/{}/reset-password", member.id),
        button: "Create reset link",
        back: "/settings/members",
    };
    render(StatusCode::OK, &page)
}

pub(crate) async fn create(
    visitor: Visitor,
    id: Path<String>,
    form: Form<FormToken>,
    members: Data<dyn MemberStore>,
    base: Data<BaseUrl>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let member = own_member(&visitor, &id, members.as_ref()).await?;
    if member.id == visitor.signed_in.member.id {
        return Ok(redirect("/settings/account/password"));
    }
    let email: EmailAddress = member.email.parse().map_err(|_| PageError::NotFound)?;
    let (organisation, token) = (visitor.organisation(), Token::new(edge::random()));
    match issue_password_reset(members.as_ref(), organisation, &email, token, &visitor.deed()).await {
        Ok(made) => {
            let page = ResetLinkPage {
                shell: Shell::new("members", &visitor),
                name: member.name,
                email: made.email.to_string(),
                link: format!("{}{}", base.0, reset_password_path(&made.token)),
                expires_at: exact(made.expires_at),
            };
            render(StatusCode::OK, &page)
        }
        Err(IssuePasswordResetError::NoSuchMember { .. }) => Err(PageError::NotFound),
        Err(IssuePasswordResetError::Store(error)) => Err(error.into()),
    }
}
