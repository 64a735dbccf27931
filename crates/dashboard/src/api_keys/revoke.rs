//! Revoking a key, after a page that shows what is about to end.

use actix_web::HttpResponse;
use actix_web::web::Data;
use intake_domain::{KeyRevocationStore, revoke_key};

use crate::api_keys::OwnKey;
use crate::api_keys::facts::ask;
use crate::mails::KeyChange;
use crate::page::error::PageError;
use crate::page::form_token::OwnForm;

const CONSEQUENCE: &str = "Requests using this key will be refused immediately. This can't be undone.";

pub(crate) async fn confirm(own: OwnKey) -> Result<HttpResponse, PageError> {
    if own.key.revoked_at.is_some() {
        return Ok(revoked(&own));
    }
    ask(&own, "Revoke", CONSEQUENCE).await
}

pub(crate) async fn revoke(
    OwnForm(own): OwnForm<OwnKey>,
    keys: Data<dyn KeyRevocationStore>,
) -> Result<HttpResponse, PageError> {
    let OwnKey { visitor, key, .. } = &own;
    revoke_key(keys.as_ref(), key.id, Some(visitor.organisation()), &visitor.audit()).await?;
    if key.revoked_at.is_none() {
        visitor.mail_key((&key.name, &key.hint), KeyChange::Revoked).await?;
    }
    Ok(revoked(&own))
}

fn revoked(OwnKey { key, filter, .. }: &OwnKey) -> HttpResponse {
    filter.back_with_notice(key.id, &format!("“{}” has been revoked. Requests using it are now refused.", key.name))
}
