//! The page that shows all policies and leads to where each is changed.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use intake_domain::KeyAge;

use crate::page::error::PageError;
use crate::page::shell::{Shell, render};
use crate::page::visitor::{Auditor, Visitor};

/// Address of the page.
pub(crate) const POLICIES: &str = "/settings/policies";

#[derive(Template)]
#[template(path = "policies/overview.html")]
struct PoliciesPage {
    shell: Shell,
    is_second_factor_required: bool,
    key_age_max: Option<KeyAge>,
    /// Reason why a change was not made.
    alert: Option<&'static str>,
}

pub(crate) async fn policies(Auditor(visitor): Auditor) -> Result<HttpResponse, PageError> {
    show_policies(StatusCode::OK, &visitor, None)
}

/// The page, with why a change was not made.
pub(crate) fn show_policies(
    status: StatusCode,
    visitor: &Visitor,
    alert: Option<&'static str>,
) -> Result<HttpResponse, PageError> {
    let page = PoliciesPage {
        shell: Shell::new("policies", visitor),
        is_second_factor_required: visitor.signed_in.is_second_factor_required,
        key_age_max: visitor.signed_in.key_age_max,
        alert,
    };
    render(status, &page)
}
