//! Revoking a key, after a page that asks for confirmation.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path, Query};
use intake_domain::{KeyStore, MemberStore, revoke_key};

use crate::api_keys::filter::{Done, Filter};
use crate::api_keys::own_key;
use crate::mails::Mails;
use crate::page::confirm::ConfirmPage;
use crate::page::error::PageError;
use crate::page::form_token::FormToken;
use crate::page::shell::{Shell, redirect, render};
use crate::page::visitor::Visitor;

pub(crate) async fn confirm(
    visitor: Visitor,
    id: Path<String>,
    filter: Option<Query<Filter>>,
    keys: Data<dyn KeyStore>,
) -> Result<HttpResponse, PageError> {
    let key = own_key(&visitor, &id, keys.as_ref()).await?;
    let filter = filter.map(Query::into_inner).unwrap_or_default();
    if key.revoked_at.is_some() {
        return Ok(redirect(&filter.back_after(Done::Revoked, key.id)));
    }
    let page = ConfirmPage {
        shell: Shell::new("keys", &visitor),
        title: format!("Revoke “{}”?", key.name),
        text: "Every request with this key will be refused from then on. This cannot be undone.",
        action: format!("/settings/api-keys/{}/revoke{}", key.id, filter.query()),
        button: "Revoke key",
        back: &filter.back(key.id),
    };
    render(StatusCode::OK, &page)
}

pub(crate) async fn revoke(
    visitor: Visitor,
    id: Path<String>,
    filter: Option<Query<Filter>>,
    form: Form<FormToken>,
    keys: Data<dyn KeyStore>,
    members: Data<dyn MemberStore>,
    mails: Data<Mails>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let key = own_key(&visitor, &id, keys.as_ref()).await?;
    let id = key.id;
    revoke_key(keys.as_ref(), id, Some(visitor.organisation()), &visitor.deed()).await?;
    if key.revoked_at.is_none() {
        mails.key_revoked(members.as_ref(), &visitor.signed_in, &key).await;
    }
    let filter = filter.map(Query::into_inner).unwrap_or_default();
    Ok(redirect(&filter.back_after(Done::Revoked, id)))
}
