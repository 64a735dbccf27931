//! Where a request came from, and what its client calls itself.

use std::net::IpAddr;
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
    #[must_use]
    pub fn client_address(&self, request: &HttpRequest) -> Option<IpAddr> {
        let peer = request.peer_addr()?.ip().to_canonical();
        let is_plain = request.conn_data::<Rc<Progress>>().is_some_and(|progress| !progress.is_secure);
        if !is_plain || !self.contain(peer) {
            return Some(peer);
        }
        // The nearest proxy writes last.
        let forwarded = request.headers().get_all(X_FORWARDED_FOR).last().and_then(|value| value.to_str().ok());
        let nearest = forwarded.and_then(|list| list.rsplit(',').next()?.trim().parse::<IpAddr>().ok());
        nearest.map(|address| address.to_canonical()).or(Some(peer))
    }
}

/// The client of a request.
pub(crate) fn client(request: &HttpRequest) -> KeyClient {
    let address = request.app_data::<Data<TrustedProxies>>().and_then(|proxies| proxies.client_address(request));
    let user_agent = request.headers().get(USER_AGENT).map(HeaderValue::as_bytes).unwrap_or_default();
    KeyClient { address, program: ClientProgram::of(user_agent) }
}
