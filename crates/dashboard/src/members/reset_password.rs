//! Settings → Members → Reset password: a one-time link for another member, who forgot the password. Members change their
//! own on the account page, which asks for the current one.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path};
use askama::Template;
use intake_domain::{
    EmailAddress, IssuePasswordResetError, MemberRecord, MemberStore, Token, reset_password_of_colleague,
};
use intake_http::edge;

use crate::BaseUrl;
use crate::account::reset_password::reset_password_path;
use crate::mails::Mails;
use crate::members::own_member;
use crate::page::confirm_password::{ConfirmPasswordPage, PasswordForm, confirm};
use crate::page::error::PageError;
use crate::page::moment::exact;
use crate::page::shell::{Shell, redirect, render};
use crate::page::visitor::{Administrator, Visitor};

#[derive(Template)]
#[template(path = "members/reset_password.html")]
struct ResetLinkPage {
    shell: Shell,
    name: String,
    email: String,
    link: String,
    is_mailed: bool,
    expires_at: String,
}

pub(crate) async fn ask(
    Administrator(visitor): Administrator,
    id: Path<String>,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    let member = own_member(&visitor, &id, members.as_ref()).await?;
    if member.id == visitor.signed_in.member.id {
        return Ok(redirect("/settings/account/password"));
    }
    confirm_page(&visitor, &member).ask()
}

pub(crate) async fn create(
    Administrator(visitor): Administrator,
    id: Path<String>,
    form: Form<PasswordForm>,
    members: Data<dyn MemberStore>,
    base: Data<BaseUrl>,
    mails: Data<Mails>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let member = own_member(&visitor, &id, members.as_ref()).await?;
    if member.id == visitor.signed_in.member.id {
        return Ok(redirect("/settings/account/password"));
    }
    let confirmed = match confirm(&visitor, form.into_inner().password).await? {
        Ok(confirmed) => confirmed,
        Err(refusal) => return confirm_page(&visitor, &member).ask_again(refusal),
    };
    let email: EmailAddress = member.email.parse().map_err(|_| PageError::NotFound)?;
    let token = Token::new(edge::random());
    match reset_password_of_colleague(members.as_ref(), confirmed, &email, token, &visitor.deed()).await {
        Ok(made) => {
            let link = format!("{}{}", base.0, reset_password_path(&made.token));
            mails.password_reset(&made.email, &visitor.signed_in.member.name, &link, made.expires_at);
            let page = ResetLinkPage {
                shell: Shell::new("members", &visitor),
                name: member.name,
                email: made.email.to_string(),
                link,
                is_mailed: mails.are_sent(),
                expires_at: exact(made.expires_at),
            };
            render(StatusCode::OK, &page)
        }
        Err(IssuePasswordResetError::NoSuchMember { .. }) => Err(PageError::NotFound),
        Err(IssuePasswordResetError::NotAdministrator) => Err(PageError::AdministratorsOnly),
        Err(IssuePasswordResetError::Store(error)) => Err(error.into()),
    }
}

fn confirm_page(visitor: &Visitor, member: &MemberRecord) -> ConfirmPasswordPage {
    ConfirmPasswordPage {
        shell: Shell::new("members", visitor),
        title: format!("Reset the password of {}?", member.name),
        text: "You get a link to send to them, by which they choose a new password. Until they do, the old one works."
            .to_owned(),
        action: format!("/settings/members/{}/reset-password", member.id),
        button: "Create reset link",
        is_danger: false,
        back: "/settings/members",
        password_error: None,
    }
}
