//! The frame around every page of a signed-in member, and how pages become answers.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{LOCATION, SET_COOKIE};
use askama::Template;
use intake_domain::{Role, Zone};
use intake_edge as edge;

use crate::page::error::PageError;
use crate::page::error_summary::with_error_summary;
use crate::page::moment::day_and_time;
use crate::page::visitor::Visitor;

/// Beside a form that shows its draft.
const NOT_SAVED: &str = "Nothing has been saved yet. What you typed is still here: send it again.";

/// Content of the frame of a page.
pub(crate) struct Shell {
    pub(crate) page: &'static str,
    pub(crate) member: String,
    /// On paper, it tells whose account printed the page.
    pub(crate) email: String,
    pub(crate) organisation: String,
    pub(crate) form_token: String,
    /// Text about what was just done.
    pub(crate) notice: Option<String>,
    /// True if the member can switch to another organisation.
    pub(crate) is_in_several: bool,
    /// Decides which parts of the menu and of the page are shown.
    pub(crate) role: Role,
    /// The zone of all days and times on the page.
    pub(crate) zone: Zone,
    /// On paper, it tells how old the page is.
    pub(crate) now: String,
    /// True if the menu is hidden, because none of it opens before two-step sign-in is on.
    pub(crate) is_menu_hidden: bool,
}

impl Shell {
    pub(crate) fn new(page: &'static str, visitor: &Visitor) -> Self {
        Self {
            page,
            member: visitor.signed_in.member.name.to_string(),
            email: visitor.signed_in.member.email.to_string(),
            organisation: visitor.signed_in.organisation_name.clone(),
            form_token: visitor.form_token(),
            notice: visitor.notice().or_else(|| visitor.draft().map(|_| NOT_SAVED.to_owned())),
            is_in_several: visitor.signed_in.is_in_several,
            role: visitor.signed_in.member.role,
            zone: visitor.zone(),
            now: day_and_time(edge::now(), visitor.zone()),
            is_menu_hidden: visitor.signed_in.must_turn_on_second_factor(),
        }
    }
}

/// The page as an answer. With the status of an error it says so in its title, and above its form.
pub(crate) fn render(status: StatusCode, page: &impl Template) -> Result<HttpResponse, PageError> {
    let page = page.render()?;
    let page = if status.is_client_error() { with_error_summary(&page) } else { page };
    Ok(HttpResponse::build(status).content_type("text/html; charset=utf-8").body(page))
}

/// Redirects to another page, after a change.
pub(crate) fn redirect(path: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header((LOCATION, path)).finish()
}

/// Redirects to another page, and gives the browser a cookie.
pub(crate) fn redirect_with_cookie(path: &str, cookie: String) -> HttpResponse {
    HttpResponse::SeeOther().insert_header((LOCATION, path)).insert_header((SET_COOKIE, cookie)).finish()
}
