//! Settings → Account: the member's own account, its second factor and its sessions.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form};
use askama::Template;
use intake_domain::{MemberStore, SessionStore};

use crate::account::sign_in::signed_out;
use crate::page::error::PageError;
use crate::page::form_token::FormToken;
use crate::page::shell::{Shell, render};
use crate::page::visitor::Visitor;

#[derive(Template)]
#[template(path = "account/page.html")]
struct AccountPage {
    shell: Shell,
    email: String,
    codes_left: Option<u32>,
}

pub(crate) async fn page(visitor: Visitor, members: Data<dyn MemberStore>) -> Result<HttpResponse, PageError> {
    let member = &visitor.signed_in.member;
    let codes_left = members.recovery_codes_left(member.id).await?;
    let email = member.email.to_string();
    render(StatusCode::OK, &AccountPage { shell: Shell::new("account", &visitor), email, codes_left })
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
