//! Settings → Members → Change role.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path};
use askama::Template;
use intake_domain::{MemberRecord, MemberStore, Role, RoleOutcome, change_role};
use serde::Deserialize;

use crate::mails::Mails;
use crate::members::list::{LAST_ADMINISTRATOR, refuse};
use crate::members::own_member;
use crate::page::confirm_password::confirm;
use crate::page::error::PageError;
use crate::page::shell::{Shell, redirect, render};
use crate::page::visitor::{Administrator, Visitor};

#[derive(Template)]
#[template(path = "members/role.html")]
struct RolePage {
    shell: Shell,
    name: String,
    action: String,
    chosen: Role,
    password_error: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct RoleForm {
    form_token: String,
    role: String,
    password: String,
}

pub(crate) async fn page(
    Administrator(visitor): Administrator,
    id: Path<String>,
    members: Data<dyn MemberStore>,
) -> Result<HttpResponse, PageError> {
    let member = own_member(&visitor, &id, members.as_ref()).await?;
    render(StatusCode::OK, &RolePage::new(&visitor, &member, member.role))
}

pub(crate) async fn change(
    Administrator(visitor): Administrator,
    id: Path<String>,
    form: Form<RoleForm>,
    members: Data<dyn MemberStore>,
    mails: Data<Mails>,
) -> Result<HttpResponse, PageError> {
    let RoleForm { form_token, role, password } = form.into_inner();
    visitor.assert_own_form(&form_token)?;
    let member = own_member(&visitor, &id, members.as_ref()).await?;
    let role: Role = role.parse().map_err(|_| PageError::BadForm)?;
    let confirmed = match confirm(&visitor, password).await? {
        Ok(confirmed) => confirmed,
        Err(refusal) => {
            let page = RolePage::new(&visitor, &member, role);
            return render(refusal.status, &RolePage { password_error: Some(refusal.text), ..page });
        }
    };
    let changed = change_role(members.as_ref(), confirmed, member.id, role, &visitor.deed()).await?;
    if changed == RoleOutcome::Changed && role == Role::Administrator && member.role != role {
        let (organisation, name) = (visitor.organisation(), &visitor.signed_in.organisation_name);
        mails.new_administrator(members.as_ref(), organisation, name, member.id).await;
    }
    match changed {
        // A key manager does not get back to the list.
        RoleOutcome::Changed if member.id == visitor.signed_in.member.id && role == Role::KeyManager => {
            Ok(redirect("/settings/account"))
        }
        RoleOutcome::Changed => Ok(redirect("/settings/members")),
        RoleOutcome::NoSuchMember => Err(PageError::NotFound),
        RoleOutcome::NotAdministrator => Err(PageError::AdministratorsOnly),
        RoleOutcome::LastAdministrator => refuse(&visitor, members.as_ref(), LAST_ADMINISTRATOR).await,
    }
}

impl RolePage {
    fn new(visitor: &Visitor, member: &MemberRecord, chosen: Role) -> Self {
        Self {
            shell: Shell::new("members", visitor),
            name: member.name.clone(),
            action: format!("/settings/members/{}/role", member.id),
            chosen,
            password_error: None,
        }
    }
}
