//! The cookies that carry a token, of a session or of a sign-in that is waiting for its code or passkey: only for this host, only
//! over HTTPS, and out of reach of scripts.

use actix_web::http::header::{COOKIE, HeaderMap};
use intake_domain::{CODE_LIMIT, SESSION_LIMIT, Token};
use time::Duration;

/// One of the cookies. Browsers accept a name that begins with `__Host-` only if the cookie is secure, for the whole path and
/// for no other host.
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
        let Self { name, life } = self;
        let seconds = life.whole_seconds();
        format!("{name}={}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={seconds}", token.expose())
    }

    /// The header that removes the token from the browser.
    pub(crate) fn clear(&self) -> String {
        format!("{}=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0", self.name)
    }
}

/// What the request's cookies of this name hold.
pub(crate) fn values<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let cookies = headers.get_all(COOKIE).filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(known, _)| *known == name).map(|(_, value)| value)
}
