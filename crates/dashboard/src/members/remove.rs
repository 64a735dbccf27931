//! Members → Remove.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use intake_domain::{AdministerError, MemberRecord, remove_member};

use crate::account::sign_in::signed_out;
use crate::members::list::{LAST_ADMINISTRATOR, refuse};
use crate::members::made_keys::{MadeKey, list_of, made_keys};
use crate::members::{MEMBERS, OwnMember};
use crate::page::error::PageError;
use crate::page::form_token::OwnForm;
use crate::page::notice::redirect_with_notice;
use crate::page::part::{Members, Part};
use crate::page::shell::{Shell, render};

pub(crate) async fn ask(own: OwnMember, members: Part<dyn Members>) -> Result<HttpResponse, PageError> {
    if own.is_last_administrator {
        return refuse(&own.visitor, members.as_ref(), LAST_ADMINISTRATOR).await;
    }
    own.visitor.assert_confirmed()?;
    render(StatusCode::OK, &RemovePage::new(&own).await?)
}

pub(crate) async fn remove(
    OwnForm(own): OwnForm<OwnMember>,
    members: Part<dyn Members>,
) -> Result<HttpResponse, PageError> {
    let OwnMember { visitor, member, .. } = &own;
    let confirmed = visitor.confirmed()?;
    match remove_member(members.as_ref(), confirmed, member.id, &visitor.audit()).await {
        Ok(()) if own.is_me() => {
            Ok(signed_out(&format!("You are no longer a member of {}.", visitor.signed_in.organisation_name)))
        }
        Ok(()) => {
            let notice = format!("{} was removed, and signed out everywhere.", member.name);
            if made_keys(visitor, member).await?.is_empty() {
                return Ok(redirect_with_notice(MEMBERS, &notice));
            }
            let notice = format!("{notice} Next: replace the keys of this list that {} knows.", member.name);
            Ok(redirect_with_notice(&list_of(member.id), &notice))
        }
        Err(AdministerError::LastAdministrator) => refuse(visitor, members.as_ref(), LAST_ADMINISTRATOR).await,
        Err(error) => Err(error.into()),
    }
}

/// The question, with the keys that have to be replaced.
#[derive(Template)]
#[template(path = "members/remove.html")]
struct RemovePage<'a> {
    shell: Shell,
    title: String,
    text: &'a str,
    action: String,
    button: &'a str,
    is_danger: bool,
    back: &'a str,
    member: &'a MemberRecord,
    is_me: bool,
    keys: Vec<MadeKey>,
}

impl<'a> RemovePage<'a> {
    async fn new(own: &'a OwnMember) -> Result<Self, PageError> {
        let OwnMember { visitor, member, .. } = own;
        let (title, text) = if own.is_me() {
            (
                "Remove yourself?".to_owned(),
                "You'll be signed out and your open invitations cancelled. API keys you created will keep working. You can \
                 come back only if an administrator invites you.",
            )
        } else {
            (
                format!("Remove {}?", member.name),
                "They'll be signed out and their open invitations cancelled. API keys they created will keep working.",
            )
        };
        Ok(Self {
            shell: Shell::new("members", visitor),
            title,
            text,
            action: format!("/settings/members/{}/remove", member.id),
            button: "Remove member",
            is_danger: true,
            back: MEMBERS,
            member,
            is_me: own.is_me(),
            keys: made_keys(visitor, member).await?,
        })
    }
}
