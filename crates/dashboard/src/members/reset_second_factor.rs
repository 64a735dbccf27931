//! Members → Reset two-step sign-in: for a member who has lost phone, recovery codes and passkeys, or whose
//! account a stranger has got into.

use actix_web::HttpResponse;
use intake_domain::{Account, EmailAddress, Name, SecondFactorError, reset_second_factor_of_colleague};

use crate::mails::{AccountChange, Mails};
use crate::members::list::{OPERATORS_ONLY, refuse};
use crate::members::{MEMBERS, OwnMember};
use crate::page::confirm::ConfirmPage;
use crate::page::error::PageError;
use crate::page::form_token::OwnForm;
use crate::page::notice::redirect_with_notice;
use crate::page::part::{Members, Part};
use crate::page::shell::{Shell, redirect};

const RESET: &str = "Two-step sign-in was reset, and the member was signed out everywhere.";

/// Page on which members look after their own second factors.
const OWN_FACTORS: &str = "/settings/account";

pub(crate) async fn ask(own: OwnMember) -> Result<HttpResponse, PageError> {
    if own.is_me() {
        return Ok(redirect(OWN_FACTORS));
    }
    own.visitor.assert_confirmed()?;
    confirm_page(&own).ask()
}

pub(crate) async fn reset(
    OwnForm(own): OwnForm<OwnMember>,
    members: Part<dyn Members>,
    mails: Part<Mails>,
) -> Result<HttpResponse, PageError> {
    if own.is_me() {
        return Ok(redirect(OWN_FACTORS));
    }
    let OwnMember { visitor, member, .. } = &own;
    let confirmed = visitor.confirmed()?;
    let email: EmailAddress = member.email.parse().map_err(|_| PageError::NotFound)?;
    let members = members.as_ref();
    match reset_second_factor_of_colleague(members, members, confirmed, &email, &visitor.audit()).await {
        Ok(()) => {
            let name = Name::stored(member.name.clone()).map_err(|_| PageError::NotFound)?;
            let account = Account { id: member.id, name, email: email.clone() };
            mails.account(&account, &email, AccountChange::SecondFactorReset, visitor.origin(), visitor.zone());
            Ok(redirect_with_notice(MEMBERS, RESET))
        }
        Err(SecondFactorError::NoSuchMember { .. }) => Err(PageError::NotFound),
        Err(SecondFactorError::SharedAccount) => refuse(visitor, members, OPERATORS_ONLY).await,
        Err(SecondFactorError::NotAdministrator) => Err(PageError::AdministratorsOnly),
        Err(SecondFactorError::Store(error)) => Err(error.into()),
        // Unchanged: it was done by another administrator, or by the member.
        Err(_) => Ok(redirect_with_notice(MEMBERS, RESET)),
    }
}

fn confirm_page(OwnMember { visitor, member, .. }: &OwnMember) -> ConfirmPage<'static> {
    ConfirmPage {
        shell: Shell::new("members", visitor),
        title: format!("Reset {}'s two-step sign-in?", member.name),
        text: "Their authenticator app, recovery codes and passkeys are removed, and their sessions end. Until \
               they set it up again, a password is enough to sign in. First check, in person or by phone, that they \
               asked for this.",
        action: format!("/settings/members/{}/reset-second-factor", member.id),
        button: "Reset two-step sign-in",
        is_danger: true,
        back: MEMBERS,
    }
}
