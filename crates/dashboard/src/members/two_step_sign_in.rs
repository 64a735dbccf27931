//! Settings → Members → Two-step sign-in: whether every member must use it.

use actix_web::HttpResponse;
use actix_web::web::{Data, Form};
use intake_domain::{MemberStore, RequireOutcome, require_second_factor};

use crate::members::list::refuse;
use crate::page::confirm_password::{ConfirmPasswordPage, PasswordForm, confirm};
use crate::page::error::PageError;
use crate::page::shell::{Shell, redirect};
use crate::page::visitor::{Administrator, Visitor};

const OWN_FIRST: &str = "Turn on two-step sign-in on your own Account page first. Then you can require it of everyone.";

pub(crate) async fn confirm_require(
    Administrator(visitor): Administrator,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    if !visitor.signed_in.has_second_factor {
        return refuse(&visitor, members.as_ref(), OWN_FIRST).await;
    }
    require_page(&visitor, members.as_ref()).await?.ask()
}

pub(crate) async fn require(
    Administrator(visitor): Administrator,
    form: Form<PasswordForm>,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    let page = require_page(&visitor, members.as_ref()).await?;
    decide(&visitor, form.into_inner(), members.as_ref(), true, page).await
}

pub(crate) async fn confirm_stop_requiring(Administrator(visitor): Administrator) -> Result<HttpResponse, PageError> {
    stop_page(&visitor).ask()
}

pub(crate) async fn stop_requiring(
    Administrator(visitor): Administrator,
    form: Form<PasswordForm>,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    let page = stop_page(&visitor);
    decide(&visitor, form.into_inner(), members.as_ref(), false, page).await
}

async fn decide(
    visitor: &Visitor,
    form: PasswordForm,
    members: &dyn MemberStore,
    is_required: bool,
    page: ConfirmPasswordPage,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let confirmed = match confirm(visitor, form.password).await? {
        Ok(confirmed) => confirmed,
        Err(refusal) => return page.ask_again(refusal),
    };
    match require_second_factor(members, confirmed, is_required, &visitor.deed()).await? {
        RequireOutcome::Decided => Ok(redirect("/settings/members")),
        RequireOutcome::OwnSecondFactorMissing => refuse(visitor, members, OWN_FIRST).await,
        RequireOutcome::NotAdministrator => Err(PageError::AdministratorsOnly),
    }
}

async fn require_page(visitor: &Visitor, members: &dyn MemberStore) -> Result<ConfirmPasswordPage, PageError> {
    let all = members.members(visitor.organisation()).await?;
    let who = match all.iter().filter(|member| !member.has_second_factor).count() {
        0 => "Every member uses it already. Nobody will be able to turn it off.".to_owned(),
        1 => "One member doesn't use it yet, and will be able to do nothing else until they have set it up.".to_owned(),
        count => {
            format!("{count} members don't use it yet, and will be able to do nothing else until they have set it up.")
        }
    };
    Ok(ConfirmPasswordPage {
        shell: Shell::new("members", visitor),
        title: "Require two-step sign-in of everyone?".to_owned(),
        text: who,
        action: "/settings/members/require-two-step-sign-in".to_owned(),
        button: "Require it",
        is_danger: false,
        back: "/settings/members",
        password_error: None,
    })
}

fn stop_page(visitor: &Visitor) -> ConfirmPasswordPage {
    ConfirmPasswordPage {
        shell: Shell::new("members", visitor),
        title: "Stop requiring two-step sign-in?".to_owned(),
        text: "Members who use it will keep using it, but will be able to turn it off.".to_owned(),
        action: "/settings/members/stop-requiring-two-step-sign-in".to_owned(),
        button: "Stop requiring it",
        is_danger: true,
        back: "/settings/members",
        password_error: None,
    }
}
