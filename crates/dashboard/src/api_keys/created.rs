//! The one page that shows a whole key.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use askama::Template;
use intake_domain::{Environment, IssuedKey, KeyFormat, KeyId, KeyStore, ManageKeysError};
use intake_http::example_patient;

use crate::BaseUrl;
use crate::api_keys::filter::{Done, Filter};
use crate::api_keys::own_key;
use crate::page::error::PageError;
use crate::page::moment::exact;
use crate::page::shell::{Shell, redirect, render};
use crate::page::visitor::{Onlooker, Visitor};

/// Where the certificate of a development service's authority is, seen from the folder that it was started in.
const AUTHORITY: &str = " --cacert .intake/tls/ca.pem";

#[derive(Template)]
#[template(path = "api_keys/created.html")]
struct CreatedKeyPage<'a> {
    shell: Shell,
    id: String,
    name: &'a str,
    key: &'a str,
    expires_at: Option<String>,
    /// Where to go from here.
    next: &'a str,
    curl: String,
    fetch: String,
}

/// Shows a key that was just made under this id, this one time.
pub(crate) fn show_made(
    visitor: &Visitor,
    made: Result<IssuedKey, ManageKeysError>,
    id: KeyId,
    next: &str,
    base: &BaseUrl,
    format: &KeyFormat,
) -> Result<HttpResponse, PageError> {
    match made {
        Ok(made) => {
            let shell = Shell::new("keys", visitor);
            render(StatusCode::OK, &CreatedKeyPage::new(shell, &made, next, base, format.environment()))
        }
        // The form was sent before, or from another window: the key's page shows what was made.
        Err(ManageKeysError::AlreadyMade) => {
            Ok(redirect(&Filter::default().on_key_page().back_after(Done::MadeBefore, id)))
        }
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
    fn new(shell: Shell, made: &'a IssuedKey, next: &'a str, base: &BaseUrl, environment: Environment) -> Self {
        let (patient, url) = (example_patient(), format!("{}/api/v1/patients/validate", base.0));
        let authority = if environment == Environment::Development { AUTHORITY } else { "" };
        Self {
            shell,
            id: made.id.to_string(),
            name: made.name.as_str(),
            key: made.key.expose(),
            expires_at: made.expires_at.map(exact),
            next,
            curl: format!(
                "curl {url}{authority} \\\n  -H \"Authorization: Bearer $INTAKE_KEY\" \\\n  -H \"Content-Type: application/json\" \\\n  \
                 -H \"Idempotency-Key: first-try\" \\\n  -d '{patient}'"
            ),
            fetch: format!(
                "await fetch(\"{url}\", {{\n  method: \"POST\",\n  headers: {{\n    Authorization: `Bearer ${{process.env.INTAKE_KEY}}`,\n    \
                 \"Content-Type\": \"application/json\",\n    \"Idempotency-Key\": \"first-try\",\n  }},\n  body: JSON.stringify({patient}),\n}});"
            ),
        }
    }
}
