//! Replacing a key without a gap: a new key with the same name, and how long the old one still works once the new one is
//! used. The new key lasts as long as the old one did, unless the visitor chooses otherwise.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path};
use askama::Template;
use intake_domain::{KeyFormat, KeyId, KeyRecord, KeyRequest, KeySecret, KeyStore, Name, Replacement, create_key, day};
use intake_http::edge;
use serde::Deserialize;
use time::{Duration, OffsetDateTime};

use crate::BaseUrl;
use crate::api_keys::create::expiry;
use crate::api_keys::created::show_made;
use crate::api_keys::own_key;
use crate::page::error::PageError;
use crate::page::shell::{Shell, render};
use crate::page::visitor::Visitor;

/// Long enough for most people to put the new key everywhere.
const USUAL_CHOICE: &str = "24h";

#[derive(Template)]
#[template(path = "api_keys/replace.html")]
struct ReplacePage<'a> {
    shell: Shell,
    id: String,
    new_id: String,
    name: &'a str,
    choices: &'static [(&'static str, &'static str, Duration)],
    chosen: &'a str,
    old_days: Option<i64>,
    expires: String,
    expires_error: Option<&'static str>,
}

#[derive(Deserialize)]
pub(crate) struct ReplaceForm {
    form_token: String,
    id: String,
    ends_after: String,
    /// None: the new key lasts as long as the old one did.
    expires: Option<String>,
}

/// How long a key can still work after its replacement is first used.
const CHOICES: [(&str, &str, Duration); 4] = [
    ("now", "immediately", Duration::ZERO),
    ("1h", "after 1 hour", Duration::HOUR),
    ("24h", "after 24 hours", Duration::DAY),
    ("7d", "after 7 days", Duration::WEEK),
];

pub(crate) async fn page(
    visitor: Visitor,
    id: Path<String>,
    keys: Data<dyn KeyStore>,
) -> Result<HttpResponse, PageError> {
    let (old, now) = (own_key(&visitor, &id, keys.as_ref()).await?, edge::now());
    let new_id = KeyId::new(now, edge::random()).to_string();
    render(StatusCode::OK, &ReplacePage::new(&visitor, &old, new_id, USUAL_CHOICE, usual_expiry(&old, now)))
}

pub(crate) async fn submit(
    visitor: Visitor,
    id: Path<String>,
    form: Form<ReplaceForm>,
    keys: Data<dyn KeyStore>,
    format: Data<KeyFormat>,
    base: Data<BaseUrl>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let (old, deed) = (own_key(&visitor, &id, keys.as_ref()).await?, visitor.deed());
    let choice = CHOICES.iter().find(|(value, ..)| *value == form.ends_after);
    let &(chosen, _, ends_after) = choice.ok_or(PageError::BadForm)?;
    let ReplaceForm { id: new_id, expires, .. } = form.into_inner();
    let expires = expires.unwrap_or_else(|| usual_expiry(&old, deed.at));
    let expires_at = match expiry(&expires, deed.at) {
        Ok(expires_at) => expires_at,
        Err(error) => {
            let page = ReplacePage::new(&visitor, &old, new_id, chosen, expires);
            return render(StatusCode::UNPROCESSABLE_ENTITY, &ReplacePage { expires_error: Some(error), ..page });
        }
    };
    let request = KeyRequest {
        organisation_id: visitor.organisation(),
        name: Name::new(old.name).map_err(|_| PageError::BadForm)?,
        expires_at,
        replaces: Some(Replacement { key: old.id, ends_after }),
        id: new_id.parse().map_err(|_| PageError::BadForm)?,
        secret: KeySecret::new(edge::random()),
    };
    let made = create_key(keys.as_ref(), &format, request, &deed).await;
    show_made(&visitor, made, &base)
}

impl<'a> ReplacePage<'a> {
    fn new(visitor: &Visitor, old: &'a KeyRecord, new_id: String, chosen: &'a str, expires: String) -> Self {
        Self {
            shell: Shell::new("keys", visitor),
            id: old.id.to_string(),
            new_id,
            name: &old.name,
            choices: &CHOICES,
            chosen,
            old_days: days(old),
            expires,
            expires_error: None,
        }
    }
}

/// The day on which a key made now expires if it is to last as many days as the old one did. Empty: it never expires.
fn usual_expiry(old: &KeyRecord, now: OffsetDateTime) -> String {
    // Today is not counted, or the new key would last less long than the old one.
    let last = days(old).map(|days| (now + Duration::days(days + 1)).date());
    last.map(day).unwrap_or_default()
}

/// How many whole days a key was made for. None: it never expires.
fn days(key: &KeyRecord) -> Option<i64> {
    key.expires_at.map(|at| (at - key.created_at).whole_days().max(1))
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    fn key(expires_at: Option<OffsetDateTime>) -> KeyRecord {
        let created_at = datetime!(2025-12-03 10:30 UTC);
        KeyRecord {
            id: KeyId::new(created_at, [0; 10]),
            name: "Front desk".to_owned(),
            hint: "abcd".to_owned(),
            created_at,
            last_used_at: None,
            expires_at,
            created_by: None,
            revoked_at: None,
            revoked_by: None,
            replaces: None,
            sent_in_clear_at: None,
        }
    }

    #[test]
    fn a_replacement_lasts_as_long_as_the_old_key_did() {
        let now = datetime!(2026-03-01 23:59 UTC);
        for (old, new) in [
            (None, ""),
            (Some(datetime!(2026-03-04 0:00 UTC)), "2026-05-31"),
            (Some(datetime!(2025-12-04 0:00 UTC)), "2026-03-03"),
        ] {
            assert_eq!(usual_expiry(&key(old), now), new, "{old:?}");
        }
    }
}
