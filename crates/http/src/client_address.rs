//! Where a request came from, and what its client calls itself.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

use actix_web::HttpRequest;
use actix_web::http::header::{HeaderName, HeaderValue, USER_AGENT};
use actix_web::web::Data;
use intake_domain::{ClientProgram, KeyClient};

use crate::connection::progress::Progress;
use crate::trusted_proxies::TrustedProxies;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

impl TrustedProxies {
    /// The address that a request came from: the peer's or, where a trusted proxy forwards it to the plain listener,
    /// the one that it forwards for. No proxy ends TLS before the other listener, so its peers speak for themselves.
    /// None: the proxy does not say. Its own address would make all clients one, inside whatever network it is in.
    #[must_use]
    pub fn client_address(&self, request: &HttpRequest) -> Option<IpAddr> {
        let peer = request.peer_addr()?.ip().to_canonical();
        let is_plain = request.conn_data::<Rc<Progress>>().is_some_and(|progress| !progress.is_secure);
        if !is_plain || !self.contain(peer) {
            return Some(peer);
        }
        // The nearest proxy writes last.
        let forwarded = request.headers().get_all(X_FORWARDED_FOR).last()?.to_str().ok()?;
        address_in(forwarded.rsplit(',').next()?.trim())
    }
}

/// An address as proxies write it, some of them with the port: `203.0.113.7:1234`, `[2001:db8::1]:443`.
fn address_in(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let in_brackets = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    text.parse().ok().or_else(with_port).or_else(in_brackets).map(|address| address.to_canonical())
}

/// The client of a request.
pub(crate) fn client(request: &HttpRequest) -> KeyClient {
    let address = request.app_data::<Data<TrustedProxies>>().and_then(|proxies| proxies.client_address(request));
    let user_agent = request.headers().get(USER_AGENT).map(HeaderValue::as_bytes).unwrap_or_default();
    KeyClient { address, program: ClientProgram::of(user_agent) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_proxies_write_it_and_nothing_else_is() {
        for (text, address) in [
            ("203.0.113.7", "203.0.113.7"),
            ("203.0.113.7:1234", "203.0.113.7"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("[::ffff:203.0.113.7]:1234", "203.0.113.7"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::1]:443", "2001:db8::1"),
        ] {
            assert_eq!(address_in(text), Some(address.parse().unwrap()), "{text}");
        }
        for text in [
            "",
            "unknown",
            "_hidden",
            "localhost",
            "203.0.113.7:",
            "203.0.113.7:x",
            "203.0.113.7:70000",
            "203.0.113",
            "[203.0.113.7]",
            "[2001:db8::1",
            "2001:db8::1]:443",
            "[2001:db8::1]443",
            "0xcb007107",
            "203.0.113.7 x",
        ] {
            assert_eq!(address_in(text), None, "{text}");
        }
    }
}
