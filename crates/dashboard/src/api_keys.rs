//! Creating and revoking keys, and the one page that shows a key.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Form, Path};
use askama::Template;
use intake_domain::{
    IssuedKey, KeyFormat, KeyId, KeyRecord, KeyRequest, KeySecret, KeyStore, ManageKeysError, Name, NameError,
    create_key, find_key, revoke_key,
};
use intake_http::edge;
use serde::Deserialize;
use time::OffsetDateTime;
use time::macros::format_description;

use crate::BaseUrl;
use crate::moment::exact;
use crate::page_error::PageError;
use crate::shell::{Shell, lead_to, show};
use crate::sign_in::OwnForm;
use crate::visitor::{Onlooker, Visitor};

/// Somebody to create at the first try.
const EXAMPLE_PATIENT: &str =
    r#"{"firstName":"Ada","lastName":"Lovelace","phoneNumber":"+61412345678","dateOfBirth":"1985-12-10"}"#;

#[derive(Template)]
#[template(path = "new_api_key.html")]
struct NewKeyPage<'a> {
    shell: Shell,
    id: String,
    name: &'a str,
    name_error: Option<NameError>,
    expires: &'a str,
    expires_error: Option<&'static str>,
}

#[derive(Template)]
#[template(path = "created_api_key.html")]
struct CreatedKeyPage<'a> {
    shell: Shell,
    id: String,
    name: &'a str,
    key: &'a str,
    expires_at: Option<String>,
    curl: String,
    fetch: String,
}

#[derive(Template)]
#[template(path = "confirm.html")]
pub(crate) struct ConfirmPage<'a> {
    pub(crate) shell: Shell,
    pub(crate) title: String,
    pub(crate) text: &'a str,
    pub(crate) action: String,
    pub(crate) button: &'a str,
    pub(crate) back: &'a str,
}

#[derive(Deserialize)]
pub(crate) struct NewKeyForm {
    form_token: String,
    id: String,
    name: String,
    #[serde(default)]
    expires: String,
}

pub(crate) async fn home(_: Visitor) -> HttpResponse {
    lead_to("/settings/api-keys")
}

pub(crate) async fn form(visitor: Visitor) -> Result<HttpResponse, PageError> {
    // Made here and sent along: a form that is sent twice makes one key.
    let id = KeyId::new(edge::now(), edge::random()).to_string();
    let shell = Shell::new("keys", &visitor);
    let page = NewKeyPage { shell, id, name: "", name_error: None, expires: "", expires_error: None };
    show(StatusCode::OK, &page)
}

pub(crate) async fn create(
    visitor: Visitor,
    form: Form<NewKeyForm>,
    keys: Data<dyn KeyStore>,
    format: Data<KeyFormat>,
    base: Data<BaseUrl>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let id: KeyId = form.id.parse().map_err(|_| PageError::BadForm)?;
    let deed = visitor.deed();
    let (name, expires_at) = match (Name::new(form.name.as_str()), expiry(&form.expires, deed.at)) {
        (Ok(name), Ok(expires_at)) => (name, expires_at),
        (name, expires_at) => {
            let page = NewKeyPage {
                shell: Shell::new("keys", &visitor),
                id: form.id.clone(),
                name: &form.name,
                name_error: name.err(),
                expires: &form.expires,
                expires_error: expires_at.err(),
            };
            return show(StatusCode::UNPROCESSABLE_ENTITY, &page);
        }
    };
    let organisation_id = visitor.organisation();
    let wish =
        KeyRequest { organisation_id, name, expires_at, replaces: None, id, secret: KeySecret::new(edge::random()) };
    let made = create_key(keys.as_ref(), &format, wish, &deed).await;
    show_made(&visitor, made, &base)
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

pub(crate) async fn confirm_revoke(
    visitor: Visitor,
    id: Path<String>,
    keys: Data<dyn KeyStore>,
) -> Result<HttpResponse, PageError> {
    let key = own_key(&visitor, &id, keys.as_ref()).await?;
    if key.revoked_at.is_some() {
        return Ok(lead_to("/settings/api-keys"));
    }
    let page = ConfirmPage {
        shell: Shell::new("keys", &visitor),
        title: format!("Revoke “{}”?", key.name),
        text: "Every request with this key is refused from that moment on. This cannot be undone.",
        action: format!("/settings/api-keys/{}/revoke", key.id),
        button: "Revoke key",
        back: "/settings/api-keys",
    };
    show(StatusCode::OK, &page)
}

pub(crate) async fn revoke(
    visitor: Visitor,
    id: Path<String>,
    form: Form<OwnForm>,
    keys: Data<dyn KeyStore>,
) -> Result<HttpResponse, PageError> {
    visitor.assert_own_form(&form.form_token)?;
    let id: KeyId = id.parse().map_err(|_| PageError::NotFound)?;
    revoke_key(keys.as_ref(), id, Some(visitor.organisation()), &visitor.deed()).await?;
    Ok(lead_to("/settings/api-keys"))
}

impl From<ManageKeysError> for PageError {
    fn from(error: ManageKeysError) -> Self {
        match error {
            ManageKeysError::NoSuchOrganisation(_) | ManageKeysError::NoSuchKey(_) => Self::NotFound,
            ManageKeysError::AlreadyMade | ManageKeysError::NothingToReplace => Self::BadForm,
            ManageKeysError::TooManyKeys => Self::TooManyKeys,
            ManageKeysError::Store(error) => error.into(),
        }
    }
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

/// Shows a key that was just made, this once.
pub(crate) fn show_made(
    visitor: &Visitor,
    made: Result<IssuedKey, ManageKeysError>,
    base: &BaseUrl,
) -> Result<HttpResponse, PageError> {
    match made {
        Ok(made) => show(StatusCode::OK, &CreatedKeyPage::new(Shell::new("keys", visitor), &made, base)),
        // The form was sent before, or in another window: what there is to see is in the list.
        Err(ManageKeysError::AlreadyMade | ManageKeysError::NothingToReplace) => Ok(lead_to("/settings/api-keys")),
        Err(error) => Err(error.into()),
    }
}

/// A key of the visitor's own organisation; any other is as good as none.
pub(crate) async fn own_key(visitor: &Visitor, id: &str, keys: &dyn KeyStore) -> Result<KeyRecord, PageError> {
    let id: KeyId = id.parse().map_err(|_| PageError::NotFound)?;
    Ok(find_key(keys, visitor.organisation(), id).await?)
}

/// The beginning of the day that was typed, if there is one and it is still to come.
pub(crate) fn expiry(text: &str, now: OffsetDateTime) -> Result<Option<OffsetDateTime>, &'static str> {
    if text.is_empty() {
        return Ok(None);
    }
    let day = time::Date::parse(text, format_description!("[year]-[month]-[day]"));
    let at = day.map_err(|_| "The day must be like 2026-12-31.")?.midnight().assume_utc();
    if at > now { Ok(Some(at)) } else { Err("The day must be in the future.") }
}
