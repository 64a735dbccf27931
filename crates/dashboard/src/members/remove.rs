//! Settings → Members → Remove.

use actix_web::HttpResponse;
use actix_web::web::{Data, Form, Path};
use intake_domain::{MemberRecord, MemberStore, RemoveOutcome, remove_member};

use crate::members::list::{LAST_ADMINISTRATOR, refuse};
use crate::members::own_member;
use crate::page::confirm_password::{ConfirmPasswordPage, PasswordForm, confirm};
use crate::page::error::PageError;
use crate::page::shell::{Shell, redirect};
use crate::page::visitor::{Administrator, Visitor};

pub(crate) async fn ask(
    Administrator(visitor): Administrator,
    id: Path<String>,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    let member = own_member(&visitor, &id, members.as_ref()).await?;
    confirm_page(&visitor, &member).ask()
}

pub(crate) async fn remove(
    Administrator(visitor): Administrator,
    id: Path<String>,
    form: Form<PasswordForm>,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let member = own_member(&visitor, &id, members.as_ref()).await?;
    let confirmed = match confirm(&visitor, form.into_inner().password).await? {
        Ok(confirmed) => confirmed,
        Err(refusal) => return confirm_page(&visitor, &member).ask_again(refusal),
    };
    match remove_member(members.as_ref(), confirmed, member.id, &visitor.deed()).await? {
        RemoveOutcome::Removed => Ok(redirect("/settings/members")),
        RemoveOutcome::NoSuchMember => Err(PageError::NotFound),
        RemoveOutcome::NotAdministrator => Err(PageError::AdministratorsOnly),
        RemoveOutcome::LastAdministrator => refuse(&visitor, members.as_ref(), LAST_ADMINISTRATOR).await,
    }
}

fn confirm_page(visitor: &Visitor, member: &MemberRecord) -> ConfirmPasswordPage {
    let is_me = member.id == visitor.signed_in.member.id;
    let (title, text) = if is_me {
        (
            "Remove yourself?".to_owned(),
            "Your sessions and the invitations you made end at once. The API keys you created keep working.",
        )
    } else {
        (
            format!("Remove {}?", member.name),
            "Their sessions and the invitations they made end at once. The API keys they created keep working.",
        )
    };
    ConfirmPasswordPage {
        shell: Shell::new("members", visitor),
        title,
        text: text.to_owned(),
        action: format!("/settings/members/{}/remove", member.id),
        button: "Remove member",
        is_danger: true,
        back: "/settings/members",
        password_error: None,
    }
}
