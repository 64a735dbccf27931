//! The one page that shows a whole key.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use askama::Template;
use intake_domain::{IssuedKey, KeyStore, ManageKeysError};

use crate::BaseUrl;
use crate::api_keys::own_key;
use crate::page::error::PageError;
use crate::page::moment::exact;
use crate::page::shell::{Shell, redirect, render};
use crate::page::visitor::{Onlooker, Visitor};

/// The patient in the examples, which keeps every rule.
const EXAMPLE_PATIENT: &str =
    r#"{"firstName":"Ada","lastName":"Lovelace","phoneNumber":"+61412345678","dateOfBirth":"1985-12-10"}"#;

#[derive(Template)]
#[template(path = "api_keys/created.html")]
struct CreatedKeyPage<'a> {
    shell: Shell,
    id: String,
    name: &'a str,
    key: &'a str,
    expires_at: Option<String>,
    curl: String,
    fetch: String,
}

/// Shows a key that was just made, this one time.
pub(crate) fn show_made(
    visitor: &Visitor,
    made: Result<IssuedKey, ManageKeysError>,
    base: &BaseUrl,
) -> Result<HttpResponse, PageError> {
    match made {
        Ok(made) => render(StatusCode::OK, &CreatedKeyPage::new(Shell::new("keys", visitor), &made, base)),
        // The form was sent before, or from another window: the list shows what was made.
        Err(ManageKeysError::AlreadyMade | ManageKeysError::NothingToReplace) => Ok(redirect("/settings/api-keys")),
        Err(error) => Err(error.into()),
    }
}

/// Whether the key has been used: asked by the script of the page that shows the key.
pub(crate) async fn first_use(
    Onlooker(visitor): Onlooker,
    id: Path<String>,
    keys: Data<dyn KeyStore>,
) -> Result<HttpResponse, PageError> {
    let key = own_key(&visitor, &id, keys.as_ref()).await?;
    let answer = if key.last_used_at.is_some() { r#"{"used":true}"# } else { r#"{"used":false}"# };
    Ok(HttpResponse::Ok().content_type("application/json").body(answer))
}

impl<'a> CreatedKeyPage<'a> {
    fn new(shell: Shell, made: &'a IssuedKey, base: &BaseUrl) -> Self {
        let (key, url) = (made.key.expose(), format!("{}/api/v1/patients", base.0));
        Self {
            shell,
            id: made.id.to_string(),
            name: made.name.as_str(),
            key,
            expires_at: made.expires_at.map(exact),
            curl: format!(
                "curl {url} -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '{EXAMPLE_PATIENT}'"
            ),
            fetch: format!(
                "await fetch(\"{url}\", {{\n  method: \"POST\",\n  headers: {{\n    Authorization: \"Bearer {key}\",\n    \"Content-Type\": \"application/json\",\n  }},\n  body: JSON.stringify({EXAMPLE_PATIENT}),\n}});"
            ),
        }
    }
}
