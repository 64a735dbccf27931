//! Withdrawing an invitation that has not been accepted: it went to a mistyped address, or was made by mistake.

use actix_web::HttpResponse;
use actix_web::web::Path;
use intake_domain::TokenDigest;

use crate::members::{MEMBERS, open_invitation, path_of_invitation};
use crate::page::confirm::ConfirmPage;
use crate::page::error::PageError;
use crate::page::form_token::OwnForm;
use crate::page::notice::redirect_with_notice;
use crate::page::part::{Members, Part};
use crate::page::shell::Shell;
use crate::page::visitor::Administrator;

pub(crate) async fn confirm(
    Administrator(visitor): Administrator,
    invitation: Path<String>,
    invitations: Part<dyn Members>,
) -> Result<HttpResponse, PageError> {
    let invitation = open_invitation(&visitor, &invitation, invitations.as_ref()).await?;
    ConfirmPage {
        shell: Shell::new("members", &visitor),
        title: format!("Withdraw the invitation for {}?", invitation.email),
        text: "The link will stop working immediately. You can invite them again later.",
        action: path_of_invitation(&invitation.token, "withdraw"),
        button: "Withdraw invitation",
        is_danger: true,
        back: MEMBERS,
    }
    .ask()
}

pub(crate) async fn withdraw(
    OwnForm(Administrator(visitor)): OwnForm<Administrator>,
    invitation: Path<String>,
    invitations: Part<dyn Members>,
) -> Result<HttpResponse, PageError> {
    let token = TokenDigest::from_hexadecimal(&invitation).ok_or(PageError::NotFound)?;
    invitations.withdraw(visitor.organisation(), &token, &visitor.audit()).await?;
    Ok(redirect_with_notice(MEMBERS, "The invitation was withdrawn."))
}
