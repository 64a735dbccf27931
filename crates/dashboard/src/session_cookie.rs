//! The cookie that carries a session's token: for this host alone, over HTTPS alone, out of reach for scripts.

use actix_web::http::header::{COOKIE, HeaderMap};
use intake_domain::{SESSION_LIMIT, Token};

/// Browsers take a name with this beginning only if it is secure, for the whole path and for no other host.
const NAME: &str = "__Host-intake-session";

/// The token that came along, if it has the shape of one.
pub(crate) fn token(headers: &HeaderMap) -> Option<Token> {
    let cookies = headers.get_all(COOKIE).filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == NAME).find_map(|(_, value)| Token::parse(value))
}

/// Hands the token to the browser.
pub(crate) fn set(token: &Token) -> String {
    let seconds = SESSION_LIMIT.whole_seconds();
    format!("{NAME}={}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age={seconds}", token.expose())
}

/// Takes it away.
pub(crate) fn clear() -> String {
    format!("{NAME}=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0")
}
