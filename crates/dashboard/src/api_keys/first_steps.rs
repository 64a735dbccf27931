//! What a new organisation has yet to do, above the list of its keys: it goes when all is done, or when a visitor hides
//! it in this browser.

use actix_web::{HttpRequest, HttpResponse};
use intake_domain::{KeyPage, MemberStore, Role};
use time::Duration;

use crate::page::cookie;
use crate::page::error::PageError;
use crate::page::form_token::OwnForm;
use crate::page::notice::redirect_with_notice;
use crate::page::visitor::{Administrator, Visitor};

const COOKIE: &str = "__Host-intake-first-steps";
/// A year in this browser: longer than anybody takes over the first steps.
const HIDDEN_FOR: Duration = Duration::days(365);

/// A thing to do, and where.
pub(crate) struct Step {
    pub(crate) is_done: bool,
    pub(crate) text: &'static str,
    pub(crate) link: &'static str,
}

/// The steps. None: all are done, or the visitor does not want to see them.
pub(crate) async fn first_steps(
    request: &HttpRequest,
    visitor: &Visitor,
    keys: &KeyPage,
    members: &dyn MemberStore,
) -> Result<Option<[Step; 4]>, PageError> {
    // Nobody else can invite people.
    if !visitor.signed_in.member.role.administers() || cookie::values(request.headers(), COOKIE).next().is_some() {
        return Ok(None);
    }
    let members = members.members(visitor.organisation()).await?;
    let administrators = members.iter().filter(|member| member.role == Role::Administrator).count();
    let me = visitor.signed_in.member.id;
    let step = |is_done, text, link| Step { is_done, text, link };
    let steps = [
        step(keys.total > 0, "Create a key for the software that will send patients", "/settings/api-keys/new"),
        step(keys.is_any_used, "Send your first request", "/docs"),
        step(administrators > 1, "Invite a second administrator, so you don't get locked out", "/settings/members"),
        step(
            members.iter().any(|member| member.id == me && member.has_second_factor),
            "Turn on two-step sign-in",
            "/settings/account/second-factor",
        ),
    ];
    Ok(Some(steps).filter(|steps| steps.iter().any(|step| !step.is_done)))
}

pub(crate) async fn hide(_: OwnForm<Administrator>) -> Result<HttpResponse, PageError> {
    let mut response = redirect_with_notice("/settings/api-keys", "First steps are hidden in this browser.");
    cookie::add(&mut response, COOKIE, "hidden", HIDDEN_FOR);
    Ok(response)
}
