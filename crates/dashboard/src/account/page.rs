//! Settings → Account: the member's own account, its second factor and its sessions.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Form};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use intake_domain::{MemberStore, Role, SessionStore};

use crate::account::sign_in::signed_out;
use crate::page::error::PageError;
use crate::page::form_token::FormToken;
use crate::page::shell::{Shell, render};
use crate::page::visitor::Visitor;

/// The query of the account's and the sign-in page to which a change of the password leads.
pub(crate) const PASSWORD_CHANGED: &str = "password-changed";

#[derive(Template)]
#[template(path = "account/page.html")]
struct AccountPage {
    shell: Shell,
    email: String,
    role: Role,
    is_second_factor_required: bool,
    codes_left: Option<u32>,
    is_password_changed: bool,
}

pub(crate) async fn page(
    request: HttpRequest,
    visitor: Visitor,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    let member = &visitor.signed_in.member;
    let codes_left = members.recovery_codes_left(member.id).await?;
    let email = member.email.to_string();
    let is_password_changed = request.query_string() == PASSWORD_CHANGED;
    let page = AccountPage {
        shell: Shell::new("account", &visitor),
        email,
        role: member.role,
        is_second_factor_required: visitor.signed_in.is_second_factor_required,
        codes_left,
        is_password_changed,
    };
    render(StatusCode::OK, &page)
}

pub(crate) async fn sign_out_everywhere(
    visitor: Visitor,
    form: Form<FormToken>,
    sessions: Data<dyn SessionStore>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    sessions.end_all(&visitor.signed_in.member, &visitor.deed()).await?;
    Ok(signed_out())
}
