//! Account → Change name.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Form;
use askama::Template;
use intake_domain::{ChangeNameError, NameError, change_name};
use serde::Deserialize;

use crate::account::ACCOUNT;
use crate::page::error::PageError;
use crate::page::notice::redirect_with_notice;
use crate::page::part::{Members, Part};
use crate::page::shell::{Shell, render};
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
    let draft = visitor.draft().map(|draft| draft.field("name"));
    let name = draft.as_deref().unwrap_or(visitor.signed_in.member.name.as_str());
    render(StatusCode::OK, &NamePage { shell: Shell::new("account", &visitor), name, name_error: None })
}

pub(crate) async fn change(
    visitor: Visitor,
    form: Form<NameForm>,
    accounts: Part<dyn Members>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let name = form.name.as_str();
    match change_name(accounts.as_ref(), &visitor.signed_in.member, name, &visitor.audit()).await {
        Ok(()) if name == visitor.signed_in.member.name.as_str() => {
            Ok(redirect_with_notice(ACCOUNT, "This is the name you already have. Nothing was changed."))
        }
        Ok(()) => Ok(redirect_with_notice(ACCOUNT, "Your name was changed.")),
        Err(ChangeNameError::Invalid(error)) => {
            let page = NamePage { shell: Shell::new("account", &visitor), name, name_error: Some(error) };
            render(StatusCode::UNPROCESSABLE_ENTITY, &page)
        }
        Err(ChangeNameError::Store(error)) => Err(error.into()),
    }
}
