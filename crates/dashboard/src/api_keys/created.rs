//! The one page that shows a whole key.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use askama::Template;
use intake_domain::{IssuedKey, KeyId, KeyStore, ManageKeysError};
use intake_http::example_patient;

use crate::api_keys::filter::Filter;
use crate::api_keys::own_key;
use crate::page::base_url::{Authority, BaseUrl};
use crate::page::error::PageError;
use crate::page::moment::{Moment, exact};
use crate::page::shell::{Shell, render};
use crate::page::visitor::{Onlooker, Visitor};

const MADE_BEFORE: &str =
    "This key was already created and shown. If you didn't copy it, revoke it and create another.";

#[derive(Template)]
#[template(path = "api_keys/created.html")]
struct CreatedKeyPage<'a> {
    shell: Shell,
    id: String,
    name: &'a str,
    key: &'a str,
    expires_at: Option<Moment>,
    replaced: Option<Replaced>,
    /// Where to go from here.
    next: &'a str,
    curl: String,
    fetch: String,
}

/// The key that the new one replaces.
pub(crate) struct Replaced {
    /// The address of its page.
    pub(crate) link: String,
    /// When it stops, counted from the first use of the new key.
    pub(crate) stops: &'static str,
}

/// Shows a key that was just made under this id, this one time.
pub(crate) fn show_made(
    visitor: &Visitor,
    made: Result<IssuedKey, ManageKeysError>,
    id: KeyId,
    next: &str,
    replaced: Option<Replaced>,
) -> Result<HttpResponse, PageError> {
    match made {
        Ok(made) => render(StatusCode::OK, &CreatedKeyPage { replaced, ..CreatedKeyPage::new(visitor, &made, next)? }),
        // The form was sent before, or from another window: the key's page shows what was made.
        Err(ManageKeysError::AlreadyMade) => Ok(Filter::default().on_key_page().back_with_notice(id, MADE_BEFORE)),
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
    fn new(visitor: &Visitor, made: &'a IssuedKey, next: &'a str) -> Result<Self, PageError> {
        let url = format!("{}/api/v1/patients/validate", visitor.shared::<BaseUrl>()?.0);
        let authority = visitor.shared::<Authority>()?.0.as_ref().map(|file| format!(" --cacert {file}"));
        let (patient, authority) = (example_patient(), authority.unwrap_or_default());
        Ok(Self {
            shell: Shell::new("keys", visitor),
            id: made.id.to_string(),
            name: made.name.as_str(),
            key: made.key.expose(),
            expires_at: made.expires_at.map(exact),
            replaced: None,
            next,
            curl: format!(
                "curl {url}{authority} \\\n  -H \"Authorization: Bearer $INTAKE_KEY\" \\\n  -H \"Content-Type: application/json\" \\\n  \
                 -H \"Idempotency-Key: first-try\" \\\n  -d '{patient}'"
            ),
            fetch: format!(
                "await fetch(\"{url}\", {{\n  method: \"POST\",\n  headers: {{\n    Authorization: `Bearer ${{process.env.INTAKE_KEY}}`,\n    \
                 \"Content-Type\": \"application/json\",\n    \"Idempotency-Key\": \"first-try\",\n  }},\n  body: JSON.stringify({patient}),\n}});"
            ),
        })
    }
}
