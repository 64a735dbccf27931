//! Members → End sessions: for a colleague who left a browser signed in, or whose account a stranger uses.

use actix_web::HttpResponse;
use intake_domain::{Account, EmailAddress, Name, end_sessions_of_colleague};

use crate::account::ACCOUNT;
use crate::mails::{AccountChange, Mails};
use crate::members::{MEMBERS, OwnMember};
use crate::page::confirm::ConfirmPage;
use crate::page::error::PageError;
use crate::page::form_token::OwnForm;
use crate::page::notice::redirect_with_notice;
use crate::page::part::{Members, Part};
use crate::page::shell::{Shell, redirect};

pub(crate) async fn ask(own: OwnMember) -> Result<HttpResponse, PageError> {
    if own.is_me() {
        return Ok(redirect(ACCOUNT));
    }
    own.visitor.assert_confirmed()?;
    confirm_page(&own).ask()
}

pub(crate) async fn end(
    OwnForm(own): OwnForm<OwnMember>,
    members: Part<dyn Members>,
    mails: Part<Mails>,
) -> Result<HttpResponse, PageError> {
    if own.is_me() {
        return Ok(redirect(ACCOUNT));
    }
    let OwnMember { visitor, member, .. } = &own;
    let confirmed = visitor.confirmed()?;
    end_sessions_of_colleague(members.as_ref(), confirmed, member.id, &visitor.audit()).await?;
    let email: EmailAddress = member.email.parse().map_err(|_| PageError::NotFound)?;
    let name = Name::stored(member.name.clone()).map_err(|_| PageError::NotFound)?;
    let account = Account { id: member.id, name, email: email.clone() };
    mails.account(&account, &email, AccountChange::SessionsEnded, visitor.origin(), visitor.zone());
    Ok(redirect_with_notice(MEMBERS, &format!("{} was signed out everywhere.", member.name)))
}

fn confirm_page(OwnMember { visitor, member, .. }: &OwnMember) -> ConfirmPage<'static> {
    ConfirmPage {
        shell: Shell::new("members", visitor),
        title: format!("End {}'s sessions?", member.name),
        text: "They'll be signed out of this organisation in every browser, and can sign in again. If someone else may \
               be able to sign in as them, have them change their password, too.",
        action: format!("/settings/members/{}/end-sessions", member.id),
        button: "End sessions",
        is_danger: true,
        back: MEMBERS,
    }
}
