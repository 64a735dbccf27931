//! Members → a member: what is known about them, and what administrators can change.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use intake_domain::{MemberRecord, Passwords};

use crate::members::made_keys::{MadeKey, made_keys};
use crate::members::{OwnMember, SeenMember};
use crate::page::error::PageError;
use crate::page::moment::{Moment, exact};
use crate::page::shell::{Shell, render};

#[derive(Template)]
#[template(path = "members/member.html")]
struct MemberPage {
    shell: Shell,
    member: MemberRecord,
    joined_at: Moment,
    is_me: bool,
    is_last_administrator: bool,
    /// Returns whether members sign in with passwords.
    has_passwords: bool,
    keys: Vec<MadeKey>,
}

pub(crate) async fn page(SeenMember(own): SeenMember) -> Result<HttpResponse, PageError> {
    let is_me = own.is_me();
    let keys = made_keys(&own.visitor, &own.member).await?;
    let OwnMember { visitor, member, is_last_administrator } = own;
    let (shell, joined_at) = (Shell::new("members", &visitor), exact(member.joined_at, visitor.zone()));
    let has_passwords = visitor.shared::<Passwords>()?.are_on();
    let page = MemberPage { shell, member, joined_at, is_me, is_last_administrator, has_passwords, keys };
    render(StatusCode::OK, &page)
}
