//! Revoking a key, after a page that shows what is about to end.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form};
use askama::Template;
use intake_domain::{KeyRevocationStore, MemberStore, revoke_key};

use crate::api_keys::OwnKey;
use crate::api_keys::facts::KeyFacts;
use crate::mails::{KeyChange, Mails};
use crate::page::error::PageError;
use crate::page::form_token::FormToken;
use crate::page::shell::{Shell, render};

#[derive(Template)]
#[template(path = "api_keys/revoke.html")]
struct RevokePage<'a> {
    shell: Shell,
    name: &'a str,
    action: String,
    back: String,
    facts: KeyFacts,
}

pub(crate) async fn confirm(own: OwnKey) -> Result<HttpResponse, PageError> {
    let OwnKey { visitor, key, filter } = &own;
    if key.revoked_at.is_some() {
        return Ok(filter.back_with_notice(key.id, &revoked(&key.name)));
    }
    let page = RevokePage {
        shell: Shell::new("keys", visitor),
        name: &key.name,
        action: format!("/settings/api-keys/{}/revoke{}", key.id, filter.query()),
        back: filter.back(key.id),
        facts: KeyFacts::new(&own).await?,
    };
    render(StatusCode::OK, &page)
}

pub(crate) async fn revoke(
    OwnKey { visitor, key, filter }: OwnKey,
    form: Form<FormToken>,
    keys: Data<dyn KeyRevocationStore>,
    members: Data<dyn MemberStore>,
    mails: Data<Mails>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    revoke_key(keys.as_ref(), key.id, Some(visitor.organisation()), &visitor.audit()).await?;
    if key.revoked_at.is_none() {
        mails.key(members.as_ref(), &visitor.signed_in, (&key.name, &key.hint), KeyChange::Revoked).await;
    }
    Ok(filter.back_with_notice(key.id, &revoked(&key.name)))
}

fn revoked(name: &str) -> String {
    format!("“{name}” has been revoked. Requests using it are now refused.")
}
