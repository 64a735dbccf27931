//! The one page that shows a whole key.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use askama::Template;
use intake_domain::{IssuedKey, KeyFormat, KeyId, ManageKeysError};

use crate::api_keys::filter::Filter;
use crate::api_keys::own_key;
use crate::docs::samples::{Sample, samples, settings};
use crate::page::base_url::{Authority, BaseUrl};
use crate::page::error::PageError;
use crate::page::moment::{Moment, end};
use crate::page::part::{Keys, Part};
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
    /// Address of the next page.
    next: &'a str,
    /// Variables that a shell must have before it runs one of the samples.
    settings: String,
    samples: Vec<Sample>,
}

/// The key that the new one replaces.
pub(crate) struct Replaced {
    /// The address of its page.
    pub(crate) link: String,
    /// Time at which it stops, counted from the first patient that the new key creates.
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

/// Says if the key has been used: asked by the script of the page that shows the key.
pub(crate) async fn first_use(
    Onlooker(visitor): Onlooker,
    id: Path<String>,
    keys: Part<dyn Keys>,
) -> Result<HttpResponse, PageError> {
    let key = own_key(&visitor, &id, keys.as_ref()).await?;
    let answer = if key.last_used_at.is_some() { r#"{"used":true}"# } else { r#"{"used":false}"# };
    Ok(HttpResponse::Ok().content_type("application/json").body(answer))
}

impl<'a> CreatedKeyPage<'a> {
    fn new(visitor: &Visitor, made: &'a IssuedKey, next: &'a str) -> Result<Self, PageError> {
        let environment = visitor.shared::<KeyFormat>()?.environment();
        let authority = visitor.shared::<Authority>()?.0.as_deref();
        Ok(Self {
            shell: Shell::new("keys", visitor),
            id: made.id.to_string(),
            name: made.name.as_str(),
            key: made.key.expose(),
            expires_at: made.expires_at.map(end),
            replaced: None,
            next,
            settings: settings(&visitor.shared::<BaseUrl>()?.0, authority),
            samples: samples(environment),
        })
    }
}
