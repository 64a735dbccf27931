//! Withdrawing an invitation that has not been accepted: it went to a mistyped address, or was made by mistake.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path};
use intake_domain::{MemberStore, OpenInvitation, TokenDigest, WithdrawOutcome};
use intake_http::edge;

use crate::page::confirm::ConfirmPage;
use crate::page::error::PageError;
use crate::page::form_token::FormToken;
use crate::page::shell::{Shell, redirect, render};
use crate::page::visitor::Administrator;

/// The path of the page that withdraws this invitation.
pub(crate) fn path(invitation: &OpenInvitation) -> String {
    format!("/settings/members/invitations/{}/withdraw", invitation.token.to_hexadecimal())
}

pub(crate) async fn confirm(
    Administrator(visitor): Administrator,
    invitation: Path<String>,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    let token = TokenDigest::from_hexadecimal(&invitation).ok_or(PageError::NotFound)?;
    let open = members.open_invitations(visitor.organisation(), edge::now()).await?;
    let invitation = open.into_iter().find(|invitation| invitation.token == token).ok_or(PageError::NotFound)?;
    let page = ConfirmPage {
        shell: Shell::new("members", &visitor),
        title: format!("Withdraw the invitation for {}?", invitation.email),
        text: "Its link stops working at once. You can invite them again later.",
        action: path(&invitation),
        button: "Withdraw invitation",
        back: "/settings/members",
    };
    render(StatusCode::OK, &page)
}

pub(crate) async fn withdraw(
    Administrator(visitor): Administrator,
    invitation: Path<String>,
    form: Form<FormToken>,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let token = TokenDigest::from_hexadecimal(&invitation).ok_or(PageError::NotFound)?;
    match members.withdraw(visitor.organisation(), &token, &visitor.deed()).await? {
        WithdrawOutcome::Withdrawn => Ok(redirect("/settings/members")),
        WithdrawOutcome::NoSuchInvitation => Err(PageError::NotFound),
        WithdrawOutcome::NotAdministrator => Err(PageError::AdministratorsOnly),
    }
}
