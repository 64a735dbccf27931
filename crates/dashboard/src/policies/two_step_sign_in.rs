//! Policies → Two-step sign-in: whether every member must use it.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use intake_domain::{AdministerError, MemberStore, require_second_factor};

use crate::page::confirm::ConfirmPage;
use crate::page::error::PageError;
use crate::page::form_token::OwnForm;
use crate::page::notice::redirect_with_notice;
use crate::page::part::{Members, Part};
use crate::page::shell::Shell;
use crate::page::visitor::{Administrator, Visitor};
use crate::policies::overview::{POLICIES, show_policies};

const REQUIRED: &str = "Two-step sign-in is required for everyone.";
const OPTIONAL: &str = "Two-step sign-in is optional.";
const OWN_FIRST: &str =
    "Turn on two-step sign-in on your own Account page first. Then you can require it for everyone.";

pub(crate) async fn confirm_require(
    Administrator(visitor): Administrator,
    members: Part<dyn Members>,
) -> Result<HttpResponse, PageError> {
    if !visitor.signed_in.has_second_factor {
        return show_policies(StatusCode::CONFLICT, &visitor, Some(OWN_FIRST));
    }
    visitor.assert_confirmed()?;
    ask_to_require(&visitor, members.as_ref()).await
}

pub(crate) async fn require(
    OwnForm(Administrator(visitor)): OwnForm<Administrator>,
    members: Part<dyn Members>,
) -> Result<HttpResponse, PageError> {
    decide(&visitor, members.as_ref(), true).await
}

pub(crate) async fn confirm_stop_requiring(Administrator(visitor): Administrator) -> Result<HttpResponse, PageError> {
    visitor.assert_confirmed()?;
    ConfirmPage {
        shell: Shell::new("policies", &visitor),
        title: "Stop requiring two-step sign-in?".to_owned(),
        text: "Members who use it keep it, but can turn it off.",
        action: "/settings/policies/stop-requiring-two-step-sign-in".to_owned(),
        button: "Stop requiring it",
        is_danger: true,
        back: POLICIES,
    }
    .ask()
}

pub(crate) async fn stop_requiring(
    OwnForm(Administrator(visitor)): OwnForm<Administrator>,
    members: Part<dyn Members>,
) -> Result<HttpResponse, PageError> {
    decide(&visitor, members.as_ref(), false).await
}

async fn decide(visitor: &Visitor, members: &dyn MemberStore, is_required: bool) -> Result<HttpResponse, PageError> {
    let confirmed = visitor.confirmed()?;
    match require_second_factor(members, confirmed, is_required, &visitor.audit()).await {
        Ok(()) => Ok(redirect_with_notice(POLICIES, if is_required { REQUIRED } else { OPTIONAL })),
        Err(AdministerError::OwnSecondFactorMissing) => show_policies(StatusCode::CONFLICT, visitor, Some(OWN_FIRST)),
        Err(error) => Err(error.into()),
    }
}

async fn ask_to_require(visitor: &Visitor, members: &dyn MemberStore) -> Result<HttpResponse, PageError> {
    let all = members.members(visitor.organisation()).await?;
    let who = match all.iter().filter(|member| !member.has_second_factor).count() {
        0 => "Every member already uses it. Nobody will be able to turn it off.".to_owned(),
        1 => "One member doesn't use it yet, and will be able to do nothing else until they have set it up.".to_owned(),
        count => {
            format!("{count} members don't use it yet, and will be able to do nothing else until they have set it up.")
        }
    };
    ConfirmPage {
        shell: Shell::new("policies", visitor),
        title: "Require two-step sign-in for everyone?".to_owned(),
        text: &who,
        action: "/settings/policies/require-two-step-sign-in".to_owned(),
        button: "Require it",
        is_danger: false,
        back: POLICIES,
    }
    .ask()
}
