//! Settings → Account → Change name.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form};
use askama::Template;
use intake_domain::{ChangeNameError, MemberStore, NameError, change_name};
use serde::Deserialize;

use crate::page::error::PageError;
use crate::page::shell::{Shell, redirect, render};
use crate::page::visitor::Visitor;

#[derive(Template)]
#[template(path = "account/name.html")]
struct NamePage<'a> {
    shell: Shell,
    name: &'a str,
    name_error: Option<NameError>,
}

#[derive(Deserialize)]
pub(crate) struct NameForm {
    form_token: String,
    name: String,
}

pub(crate) async fn page(visitor: Visitor) -> Result<HttpResponse, PageError> {
    let name = visitor.signed_in.member.name.as_str();
    render(StatusCode::OK, &NamePage { shell: Shell::new("account", &visitor), name, name_error: None })
}

pub(crate) async fn change(
    visitor: Visitor,
    form: Form<NameForm>,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let name = form.name.as_str();
    match change_name(members.as_ref(), &visitor.signed_in.member, name, &visitor.deed()).await {
        Ok(()) => Ok(redirect("/settings/account")),
        Err(ChangeNameError::Invalid(error)) => {
            let page = NamePage { shell: Shell::new("account", &visitor), name, name_error: Some(error) };
            render(StatusCode::UNPROCESSABLE_ENTITY, &page)
        }
        Err(ChangeNameError::Store(error)) => Err(error.into()),
    }
}
