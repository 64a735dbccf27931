//! What was typed into a form that could not be accepted yet, because the session has ended or the member has to
//! confirm who they are. It waits in the browser, in a cookie, until the form is shown again. Passwords and codes are
//! never kept.

use actix_web::http::header::HeaderMap;
use actix_web::web::Bytes;
use actix_web::{HttpMessage, HttpRequest, HttpResponse};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use percent_encoding::percent_decode_str;
use time::Duration;

use crate::page::cookie;
use crate::page::destination::form_of;
use crate::page::error::PageError;

const COOKIE: &str = "__Host-intake-draft";
/// Time enough to sign in with a code.
const LIFE: Duration = Duration::minutes(15);
/// The fields that are kept.
const FIELDS: [&str; 13] = [
    "contact",
    "days",
    "email",
    "ends_after",
    "ends_by",
    "expires",
    "lasts",
    "name",
    "networks",
    "note",
    "role",
    "why",
    "zone",
];

/// The page shows the draft: its answer removes the cookie.
struct Shown;

/// The kept fields of a form.
pub(crate) struct Draft(Vec<(String, String)>);

/// Keeps the fields of a form, if the answer leads away from it before they were looked at.
pub(crate) fn keep(request: &HttpRequest, body: &Bytes, response: &mut HttpResponse) {
    let error = response.error().and_then(|error| error.as_error::<PageError>());
    let is_interrupted = matches!(error, Some(PageError::SignInFirst(_) | PageError::ConfirmFirst(_)));
    let (Some(form), true, Ok(body)) = (form_of(request.path()), is_interrupted, std::str::from_utf8(body)) else {
        return;
    };
    let is_kept = |field: &&str| field.split_once('=').is_some_and(|(name, _)| FIELDS.contains(&name));
    let fields = body.split('&').filter(is_kept).map(|field| compact(&field.replace('+', " ")));
    let draft = std::iter::once(form.to_owned()).chain(fields).collect::<Vec<_>>().join("&");
    cookie::add(response, COOKIE, &BASE64_URL_SAFE_NO_PAD.encode(draft), LIFE);
}

/// The draft of the form on this page.
pub(crate) fn draft(request: &HttpRequest) -> Option<Draft> {
    let draft = parse(request.headers(), request.path())?;
    request.extensions_mut().insert(Shown);
    Some(draft)
}

/// The draft of the form on another page, which stays until that page shows it.
pub(crate) fn draft_of(request: &HttpRequest, page: &str) -> Option<Draft> {
    parse(request.headers(), page)
}

/// Lets the answer remove the cookie, because what was typed has been carried out.
pub(crate) fn forget(request: &HttpRequest) {
    request.extensions_mut().insert(Shown);
}

/// Returns whether a draft waits for its form.
pub(crate) fn is_kept(headers: &HeaderMap) -> bool {
    cookie::values(headers, COOKIE).next().is_some()
}

/// Removes the cookie, if the page shows its draft.
pub(crate) fn clear(request: &HttpRequest, response: &mut HttpResponse) {
    if request.extensions().get::<Shown>().is_some() {
        cookie::remove(response, COOKIE);
    }
}

impl Draft {
    /// Returns what was typed into a field; nothing, if it was not sent.
    pub(crate) fn field(&self, name: &str) -> String {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    }
}

fn parse(headers: &HeaderMap, path: &str) -> Option<Draft> {
    let text = BASE64_URL_SAFE_NO_PAD.decode(cookie::values(headers, COOKIE).next()?).ok()?;
    let text = String::from_utf8(text).ok()?;
    let mut parts = text.split('&');
    if parts.next()? != path {
        return None;
    }
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let fields = parts.filter_map(|field| field.split_once('='));
    Some(Draft(fields.map(|(name, value)| (name.to_owned(), decode(value))).collect()))
}

/// Decodes what can be told apart without its encoding, so that a note of any script fits into a cookie.
fn compact(field: &str) -> String {
    let (name, value) = field.split_once('=').unwrap_or((field, ""));
    let value = percent_decode_str(value).decode_utf8_lossy();
    format!("{name}={}", value.replace('%', "%25").replace('&', "%26"))
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::SET_COOKIE;
    use actix_web::test::TestRequest;

    use super::*;
    use crate::page::destination::Destination;

    fn kept(path: &str, body: String) -> Option<String> {
        let request = TestRequest::post().uri(path).to_http_request();
        let mut answer = HttpResponse::from_error(PageError::SignInFirst(Destination::default()));
        keep(&request, &Bytes::from(body), &mut answer);
        let cookie = answer.headers().get(SET_COOKIE)?.to_str().unwrap().split(';').next().unwrap().to_owned();
        assert!(cookie.len() < 4_000, "browsers keep no longer ones: {}", cookie.len());
        Some(cookie)
    }

    #[test]
    fn typed_text_returns_only_to_the_page_of_its_form() {
        let body = "form_token=secret&name=R%C3%A9ception+%26+%3D+%25+%2B&lasts=date&password=hidden";
        let cookie = kept("/settings/api-keys", body.to_owned()).unwrap();
        let page =
            |path: &str| TestRequest::get().uri(path).insert_header(("cookie", cookie.clone())).to_http_request();
        let found = draft(&page("/settings/api-keys/new?q=1")).unwrap();
        assert_eq!((found.field("name"), found.field("lasts")), ("Réception & = % +".to_owned(), "date".to_owned()));
        assert_eq!((found.field("password"), found.field("form_token")), (String::new(), String::new()));
        assert!(draft(&page("/settings/api-keys")).is_none() && draft(&page("/settings/account/name")).is_none());
    }

    #[test]
    fn the_longest_note_of_any_script_fits() {
        for letter in ["%F0%9F%8F%A5", "%E4%B8%AD", "%25", "%26"] {
            let cookie = kept("/settings/api-keys/x/note", format!("note={}", letter.repeat(500)));
            assert!(cookie.is_some(), "{letter}");
        }
    }

    #[test]
    fn other_forms_and_other_answers_keep_nothing() {
        assert_eq!(kept("/settings/members/x/remove", "name=x".to_owned()), None);
        let request = TestRequest::post().uri("/settings/api-keys").to_http_request();
        let mut answer = HttpResponse::Ok().finish();
        keep(&request, &Bytes::from_static(b"name=x"), &mut answer);
        assert!(answer.headers().get(SET_COOKIE).is_none());
    }
}
