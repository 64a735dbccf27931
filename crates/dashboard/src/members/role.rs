//! Members → Change role.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Form;
use askama::Template;
use intake_domain::{AdministerError, Role, change_role};
use serde::Deserialize;

use crate::account::ACCOUNT;
use crate::mails::Mails;
use crate::members::list::{LAST_ADMINISTRATOR, refuse};
use crate::members::{MEMBERS, OwnMember, ROLES, with_article};
use crate::page::error::PageError;
use crate::page::notice::redirect_with_notice;
use crate::page::part::{Members, Part};
use crate::page::shell::{Shell, render};

#[derive(Template)]
#[template(path = "members/role.html")]
struct RolePage {
    shell: Shell,
    name: String,
    action: String,
    chosen: Role,
    /// The member loses what only administrators have made.
    is_administrator: bool,
}

#[derive(Deserialize)]
pub(crate) struct RoleForm {
    form_token: String,
    role: String,
}

pub(crate) async fn page(own: OwnMember, members: Part<dyn Members>) -> Result<HttpResponse, PageError> {
    let OwnMember { visitor, member, is_last_administrator } = own;
    if is_last_administrator {
        return refuse(&visitor, members.as_ref(), LAST_ADMINISTRATOR).await;
    }
    visitor.assert_confirmed()?;
    let chosen = visitor.draft().and_then(|draft| draft.field("role").parse().ok());
    let page = RolePage {
        shell: Shell::new("members", &visitor),
        action: format!("/settings/members/{}/role", member.id),
        chosen: chosen.unwrap_or(member.role),
        is_administrator: member.role.administers(),
        name: member.name,
    };
    render(StatusCode::OK, &page)
}

pub(crate) async fn change(
    OwnMember { visitor, member, .. }: OwnMember,
    form: Form<RoleForm>,
    members: Part<dyn Members>,
    mails: Part<Mails>,
) -> Result<HttpResponse, PageError> {
    let RoleForm { form_token, role } = form.into_inner();
    let confirmed = visitor.confirmed_by(&form_token)?;
    let role: Role = role.parse().map_err(|_| PageError::BadForm)?;
    let changed = change_role(members.as_ref(), confirmed, member.id, role, &visitor.audit()).await;
    if changed.is_ok() && role == Role::Administrator && member.role != role {
        let (organisation, name) = (visitor.organisation(), &visitor.signed_in.organisation_name);
        mails.new_administrator(members.as_ref(), organisation, name, member.id).await;
    }
    match changed {
        // Nobody else gets back to the form.
        Ok(()) if member.id == visitor.signed_in.member.id && !role.administers() => {
            Ok(redirect_with_notice(ACCOUNT, &format!("You are now {}.", with_article(role))))
        }
        Ok(()) => {
            let notice = format!("{} is {} now.", member.name, with_article(role));
            Ok(redirect_with_notice(MEMBERS, &notice))
        }
        Err(AdministerError::LastAdministrator) => refuse(&visitor, members.as_ref(), LAST_ADMINISTRATOR).await,
        Err(error) => Err(error.into()),
    }
}
