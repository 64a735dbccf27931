//! The page to which signing in leads: the one that was asked for before. It comes in an address that anyone can make
//! up, so only pages of this dashboard are accepted.

use actix_web::HttpRequest;
use actix_web::http::Method;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::Deserialize;

/// Page to which signing in leads by itself.
const HOME: &str = "/settings/api-keys";
/// Beginning of the addresses of all pages for members. No other host can be named behind it.
const PAGES: &str = "/settings/";
/// Longer than the address of any page with its filters.
const LENGTH_MAX: usize = 2_000;

/// The address of a page for members, with its query. Any other text becomes the first page after a sign-in.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(from = "String")]
pub(crate) struct Destination(String);

/// A query that may name a destination.
#[derive(Default, Deserialize)]
pub(crate) struct Next {
    #[serde(default)]
    pub(crate) next: Destination,
}

impl From<String> for Destination {
    fn from(text: String) -> Self {
        Self::new(&text).unwrap_or_default()
    }
}

impl Destination {
    fn new(text: &str) -> Option<Self> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        let is_page = text.starts_with(PAGES) && is_plain && text.len() <= LENGTH_MAX;
        let path = text.split(['?', '#']).next().unwrap_or_default();
        (is_page && !leads_out(path)).then(|| Self(text.to_owned()))
    }

    /// The page that a request asks for. What changes something is not repeated: then it is the page with the form, if
    /// what was typed is kept, or else the part of the menu.
    pub(crate) fn asked_for(request: &HttpRequest) -> Self {
        let asked = match *request.method() {
            Method::GET | Method::HEAD => request.uri().path_and_query().map(|asked| asked.as_str().to_owned()),
            _ => {
                let form = form_of(request.path()).map(|form| with_query(form, request));
                form.or_else(|| Some(Self::of_form(request).part()))
            }
        };
        asked.and_then(|asked| Self::new(&asked)).unwrap_or_default()
    }

    /// The page whose form a request has sent: it has the same path. The form is to be filled in again.
    pub(crate) fn of_form(request: &HttpRequest) -> Self {
        Self::new(request.path()).unwrap_or_default()
    }

    /// The part of the menu that the page belongs to.
    pub(crate) fn part(&self) -> String {
        let part = self.0.split(['/', '?']).nth(2).unwrap_or_default();
        format!("{PAGES}{part}")
    }

    /// The address of the page.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// A page on the way to this one, such as `/sign-in`, which keeps it in mind.
    pub(crate) fn after(&self, page: &str) -> String {
        if self.0 == HOME { page.to_owned() } else { format!("{page}?next={}", self.encoded()) }
    }

    /// The address as a part of another one.
    pub(crate) fn encoded(&self) -> String {
        utf8_percent_encode(&self.0, NON_ALPHANUMERIC).to_string()
    }
}

/// Returns whether a path has a segment that browsers, or what decodes the path on its way, take for "here" or "one
/// up".
fn leads_out(path: &str) -> bool {
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let is_dot = |segment: &str| matches!(segment, "." | "..");
    match decoded == path {
        true => path.split(['/', '\\']).any(is_dot),
        false => leads_out(&decoded),
    }
}

/// The page with the form whose fields are sent to this path. None: nothing that is sent there is kept.
pub(crate) fn form_of(path: &str) -> Option<&str> {
    match path {
        "/settings/api-keys" => Some("/settings/api-keys/new"),
        "/settings/members/invite"
        | "/settings/policies/key-age"
        | "/settings/policies/time-zone"
        | "/settings/account/name"
        | "/settings/account/email" => Some(path),
        _ => {
            let one = ["/settings/api-keys/", "/settings/members/"].iter().find_map(|all| path.strip_prefix(all))?;
            let (_, page) = one.split_once('/')?;
            matches!(page, "contact" | "networks" | "note" | "rename" | "replace" | "role").then_some(path)
        }
    }
}

fn with_query(page: &str, request: &HttpRequest) -> String {
    request.uri().query().map_or_else(|| page.to_owned(), |query| format!("{page}?{query}"))
}

impl Default for Destination {
    fn default() -> Self {
        Self(HOME.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn only_pages_of_the_dashboard_are_led_to() {
        for page in [
            "/settings/members",
            "/settings/api-keys?q=../..",
            "/settings/x..y/...",
            "/settings/api-keys?q=a%26b&page=2",
            "/settings/activity?before=0",
        ] {
            assert_eq!(Destination::new(page).unwrap().as_str(), page);
        }
        for other in [
            "",
            "/",
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example/settings/",
            "https:/settings/members",
            "javascript:alert(1)//settings/",
            "data:text/html,x",
            "evil.example/settings/",
            "settings/members",
            " /settings/members",
            "/settings/\\evil.example",
            "/settings/members\r\nSet-Cookie: a=b",
            "/settings/\t/evil.example",
            "/settings/\0",
            "/settings/\u{e9}",
            "/settings",
            "/sign-out",
            "/settingsevil",
            "/settings/../invitations/x/provider",
            "/settings/api-keys/../../evil",
            "/settings/./members",
            "/settings/..",
            "/settings/%2e%2e/evil",
            "/settings/.%2E/evil",
            "/settings/%252e%252e/evil",
            "/settings/..%2fevil",
            "/settings/..%5cevil",
            "/settings/x%2f..%2f..%2fevil",
            "/settings/..?q=1",
            "/settings/..#x",
        ] {
            assert_eq!(Destination::new(other), None, "{other:?}");
            assert_eq!(Destination::from(other.to_owned()), Destination::default(), "{other:?}");
        }
        assert_eq!(Destination::new(&format!("/settings/{}", "x".repeat(LENGTH_MAX))), None);
    }

    #[test]
    fn a_page_is_kept_on_the_way_to_it_and_a_change_is_not_repeated() {
        let asked = |request: TestRequest| Destination::asked_for(&request.to_http_request()).after("/sign-in");
        assert_eq!(asked(TestRequest::get().uri("/settings/api-keys")), "/sign-in");
        assert_eq!(asked(TestRequest::get().uri("/")), "/sign-in");
        assert_eq!(
            asked(TestRequest::get().uri("/settings/activity?before=1")),
            "/sign-in?next=%2Fsettings%2Factivity%3Fbefore%3D1"
        );
        assert_eq!(asked(TestRequest::post().uri("/settings/members/x/remove")), "/sign-in?next=%2Fsettings%2Fmembers");
        let note = "/settings/api-keys/x/note?q=desk";
        assert_eq!(Destination::asked_for(&TestRequest::post().uri(note).to_http_request()).as_str(), note);
        assert_eq!(
            asked(TestRequest::post().uri("/settings/api-keys")),
            "/sign-in?next=%2Fsettings%2Fapi%2Dkeys%2Fnew",
            "the form that was sent"
        );
        assert_eq!(asked(TestRequest::post().uri("/sign-out")), "/sign-in");
        assert_eq!(asked(TestRequest::get().uri("//evil.example/settings/")), "/sign-in");
    }
}
