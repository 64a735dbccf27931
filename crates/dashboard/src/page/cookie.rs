//! Cookies: only for this host, only over HTTPS, and out of reach of scripts. Some carry a token, of a session or of a
//! sign-in that is waiting for its code or passkey.

use actix_web::HttpResponse;
use actix_web::http::header::{COOKIE, HeaderMap, SET_COOKIE};
use intake_domain::{CODE_LIMIT, SESSION_LIMIT, Token};
use time::Duration;

/// One of the cookies. Browsers accept a name that begins with `__Host-` only if the cookie is secure, for the whole
/// path and for no other host.
pub(crate) struct TokenCookie {
    name: &'static str,
    life: Duration,
}

pub(crate) const SESSION: TokenCookie = TokenCookie { name: "__Host-intake-session", life: SESSION_LIMIT };
pub(crate) const PASSKEY: TokenCookie = TokenCookie { name: "__Host-intake-passkey", life: CODE_LIMIT };
pub(crate) const WAITING: TokenCookie = TokenCookie { name: "__Host-intake-waiting", life: CODE_LIMIT };

impl TokenCookie {
    /// The token in the request's cookies, if one has the shape of a token.
    pub(crate) fn token(&self, headers: &HeaderMap) -> Option<Token> {
        values(headers, self.name).find_map(Token::parse)
    }

    /// The header that gives the token to the browser.
    pub(crate) fn set(&self, token: &Token) -> String {
        header(self.name, token.expose(), self.life)
    }

    /// The header that removes the token from the browser.
    pub(crate) fn clear(&self) -> String {
        header(self.name, "", Duration::ZERO)
    }
}

/// The header that gives a cookie to the browser for a time, or removes it after none.
pub(crate) fn header(name: &str, value: &str, life: Duration) -> String {
    format!("{name}={value}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={}", life.whole_seconds())
}

/// Adds a cookie to an answer.
pub(crate) fn add(response: &mut HttpResponse, name: &str, value: &str, life: Duration) {
    if let Ok(cookie) = header(name, value, life).parse() {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
}

/// Removes a cookie with an answer.
pub(crate) fn remove(response: &mut HttpResponse, name: &str) {
    add(response, name, "", Duration::ZERO);
}

/// Returns what the request's cookies of this name hold.
pub(crate) fn values<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let cookies = headers.get_all(COOKIE).filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(known, _)| *known == name).map(|(_, value)| value)
}
