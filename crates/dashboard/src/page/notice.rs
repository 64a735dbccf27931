//! The notice that says what was just done, shown once at the top of the next page, where it gets the focus. It is a
//! cookie, which no other site can set: a query string could be forged in a link, and would repeat the notice with
//! each reload.

use actix_web::http::header::LOCATION;
use actix_web::{HttpMessage, HttpRequest, HttpResponse};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use time::Duration;

use crate::page::cookie;

const COOKIE: &str = "__Host-intake-done";
/// Time enough to load the next page.
const LIFE: Duration = Duration::MINUTE;

/// The page shows the notice: its answer removes the cookie.
struct Shown;

/// Redirects to another page, which shows this notice.
pub(crate) fn redirect_with_notice(path: &str, notice: &str) -> HttpResponse {
    let mut response = HttpResponse::SeeOther().insert_header((LOCATION, path)).finish();
    leave(&mut response, notice);
    response
}

/// Leaves a notice for the page to which this answer redirects.
pub(crate) fn leave(response: &mut HttpResponse, notice: &str) {
    cookie::add(response, COOKIE, &utf8_percent_encode(notice, NON_ALPHANUMERIC).to_string(), LIFE);
}

/// The notice that a change has left for this page.
pub(crate) fn notice(request: &HttpRequest) -> Option<String> {
    let notice = cookie::values(request.headers(), COOKIE).next()?;
    request.extensions_mut().insert(Shown);
    percent_decode_str(notice).decode_utf8().ok().filter(|notice| !notice.is_empty()).map(Into::into)
}

/// Removes the cookie, if the page shows its notice.
pub(crate) fn clear(request: &HttpRequest, response: &mut HttpResponse) {
    if request.extensions().get::<Shown>().is_some() {
        cookie::remove(response, COOKIE);
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::SET_COOKIE;
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn the_next_page_shows_the_notice_as_it_was_left() {
        let text = "“Réception; \u{202e}a=b” has been revoked.";
        let left = redirect_with_notice("/settings/api-keys", text);
        let cookie = left.headers().get(SET_COOKIE).unwrap().to_str().unwrap().split(';').next().unwrap().to_owned();
        let request = TestRequest::get().insert_header(("cookie", cookie)).to_http_request();
        assert_eq!(notice(&request).as_deref(), Some(text));
        let mut page = HttpResponse::Ok().finish();
        clear(&request, &mut page);
        assert!(page.headers().get(SET_COOKIE).unwrap().to_str().unwrap().contains("Max-Age=0"));
    }

    #[test]
    fn a_page_without_a_notice_sets_no_cookie() {
        let request = TestRequest::get().to_http_request();
        assert_eq!(notice(&request), None);
        let mut page = HttpResponse::Ok().finish();
        clear(&request, &mut page);
        assert!(page.headers().get(SET_COOKIE).is_none());
    }
}
