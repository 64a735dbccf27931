//! Settings → API keys: every key of the organisation, its status, and what can be done with it.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use askama::Template;
use intake_domain::{KeyFormat, KeyRecord, KeyStatus, KeyStore, list_keys};
use intake_http::edge;
use time::OffsetDateTime;

use crate::page::error::PageError;
use crate::page::moment::{exact, relative};
use crate::page::shell::{Shell, redirect, render};
use crate::page::visitor::Visitor;

#[derive(Template)]
#[template(path = "api_keys/list.html")]
struct KeysPage {
    shell: Shell,
    keys: Vec<KeyRow>,
}

struct KeyRow {
    id: String,
    name: String,
    hint: String,
    created_at: String,
    created_by: String,
    last_used_at: Option<String>,
    status: &'static str,
    status_class: &'static str,
    status_at: Option<String>,
    revoked_by: Option<String>,
    replacement: Option<&'static str>,
    can_be_replaced: bool,
    must_be_replaced: bool,
    is_over: bool,
}

pub(crate) async fn home(_: Visitor) -> HttpResponse {
    redirect("/settings/api-keys")
}

pub(crate) async fn page(
    visitor: Visitor,
    keys: Data<dyn KeyStore>,
    format: Data<KeyFormat>,
) -> Result<HttpResponse, PageError> {
    let now = edge::now();
    let found = list_keys(keys.as_ref(), visitor.organisation()).await?;
    let newest_first = found.iter().rev();
    let keys = newest_first.map(|key| KeyRow::new(key, &found, &format, now)).collect();
    render(StatusCode::OK, &KeysPage { shell: Shell::new("keys", &visitor), keys })
}

impl KeyRow {
    fn new(key: &KeyRecord, all: &[KeyRecord], format: &KeyFormat, now: OffsetDateTime) -> Self {
        let (status, status_class, status_at) = match key.status(now) {
            KeyStatus::Revoked(at) => ("Revoked", "revoked", Some(at)),
            KeyStatus::Expired(at) => ("Expired", "expired", Some(at)),
            KeyStatus::ActiveUntil(at) => ("Active, expires", "active", Some(at)),
            KeyStatus::Active => ("Active", "active", None),
        };
        let is_over = !key.status(now).is_active();
        let by = |name: &Option<String>| name.clone().unwrap_or_else(|| "an operator".to_owned());
        let successor = all.iter().find(|other| other.replaces == Some(key.id) && other.revoked_at.is_none());
        let replacement = match (successor, key.replaces) {
            _ if is_over => None,
            (Some(successor), _) if successor.last_used_at.is_none() => {
                Some("Still works until its replacement is first used")
            }
            (Some(_), _) => Some("Its replacement is in use"),
            (None, Some(_)) if key.last_used_at.is_none() => Some("Replacement, not used yet"),
            (None, _) => None,
        };
        Self {
            id: key.id.to_string(),
            name: key.name.clone(),
            hint: format!("{}…{}", format.head(), key.hint),
            created_at: exact(key.created_at),
            created_by: by(&key.created_by),
            last_used_at: key.last_used_at.map(relative),
            status,
            status_class,
            status_at: status_at.map(exact),
            revoked_by: key.revoked_at.map(|_| by(&key.revoked_by)),
            replacement,
            can_be_replaced: successor.is_none(),
            must_be_replaced: key.must_be_replaced(now),
            is_over,
        }
    }
}
