//! Revoking a key, after a page that shows what is about to end.

use actix_web::HttpResponse;
use intake_domain::RevokeOutcome;
use time::OffsetDateTime;

use crate::api_keys::OwnKey;
use crate::api_keys::facts::ask;
use crate::api_keys::select::Change;
use crate::mails::{KeyChange, moment};
use crate::page::error::PageError;
use crate::page::form_token::OwnForm;
use crate::page::part::{Keys, Part};

const CONSEQUENCE: &str = "Requests using this key will be refused immediately. This can't be undone.";

pub(crate) async fn confirm(own: OwnKey) -> Result<HttpResponse, PageError> {
    match own.key.revoked_at {
        Some(at) => Ok(back_from_revoked(&own, at)),
        None => ask(&own, Change::Revoke, CONSEQUENCE).await,
    }
}

pub(crate) async fn revoke(OwnForm(own): OwnForm<OwnKey>, keys: Part<dyn Keys>) -> Result<HttpResponse, PageError> {
    let OwnKey { visitor, key, filter } = &own;
    match keys.revoke(key.id, Some(visitor.organisation()), &visitor.audit()).await? {
        RevokeOutcome::Revoked { .. } => {
            visitor.mail_key(key.into(), KeyChange::Revoked).await?;
            let notice = format!("“{}” has been revoked. Requests using it are now refused.", key.name);
            Ok(filter.back_with_notice(key.id, &notice))
        }
        RevokeOutcome::AlreadyRevoked { at } => Ok(back_from_revoked(&own, at)),
    }
}

fn back_from_revoked(OwnKey { visitor, key, filter }: &OwnKey, at: OffsetDateTime) -> HttpResponse {
    filter.back_with_notice(key.id, &format!("“{}” was already revoked on {}.", key.name, moment(at, visitor.zone())))
}
