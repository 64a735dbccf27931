//! Members → Remove.

use actix_web::HttpResponse;
use intake_domain::{AdministerError, remove_member};

use crate::account::sign_in::signed_out;
use crate::members::list::{LAST_ADMINISTRATOR, refuse};
use crate::members::{MEMBERS, OwnMember};
use crate::page::confirm::ConfirmPage;
use crate::page::error::PageError;
use crate::page::form_token::OwnForm;
use crate::page::notice::redirect_with_notice;
use crate::page::part::{Members, Part};
use crate::page::shell::Shell;

pub(crate) async fn ask(own: OwnMember, members: Part<dyn Members>) -> Result<HttpResponse, PageError> {
    if own.is_last_administrator {
        return refuse(&own.visitor, members.as_ref(), LAST_ADMINISTRATOR).await;
    }
    own.visitor.assert_confirmed()?;
    confirm_page(&own).ask()
}

pub(crate) async fn remove(
    OwnForm(own): OwnForm<OwnMember>,
    members: Part<dyn Members>,
) -> Result<HttpResponse, PageError> {
    let OwnMember { visitor, member, .. } = &own;
    let confirmed = visitor.confirmed()?;
    match remove_member(members.as_ref(), confirmed, member.id, &visitor.audit()).await {
        Ok(()) if own.is_me() => {
            Ok(signed_out(&format!("You are no longer a member of {}.", visitor.signed_in.organisation_name)))
        }
        Ok(()) => {
            let notice = format!("{} was removed, and signed out everywhere.", member.name);
            Ok(redirect_with_notice(MEMBERS, &notice))
        }
        Err(AdministerError::LastAdministrator) => refuse(visitor, members.as_ref(), LAST_ADMINISTRATOR).await,
        Err(error) => Err(error.into()),
    }
}

fn confirm_page(own: &OwnMember) -> ConfirmPage<'static> {
    let OwnMember { visitor, member, .. } = own;
    let (title, text) = if own.is_me() {
        (
            "Remove yourself?".to_owned(),
            "You'll be signed out and your open invitations cancelled. API keys you created will keep working. You can come \
             back only if an administrator invites you.",
        )
    } else {
        (
            format!("Remove {}?", member.name),
            "They'll be signed out and their open invitations cancelled. API keys they created will keep working.",
        )
    };
    ConfirmPage {
        shell: Shell::new("members", visitor),
        title,
        text,
        action: format!("/settings/members/{}/remove", member.id),
        button: "Remove member",
        is_danger: true,
        back: MEMBERS,
    }
}
