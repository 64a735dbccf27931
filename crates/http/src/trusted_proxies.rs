//! The proxies in front of the service that are believed about how a request came in and from where.

use std::net::IpAddr;

use actix_web::HttpRequest;
use actix_web::http::header::HeaderName;
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The networks whose `X-Forwarded` headers are believed.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Trusts every address of these networks.
    #[must_use]
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// Whether nobody is trusted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The address that a request came from: the peer's or, where that is a trusted proxy, the one that it forwards for.
    #[must_use]
    pub fn client_address(&self, request: &HttpRequest) -> Option<IpAddr> {
        let peer = request.peer_addr()?.ip().to_canonical();
        if !self.contain(peer) {
            return Some(peer);
        }
        // The nearest proxy writes last.
        let forwarded = request.headers().get_all(X_FORWARDED_FOR).last().and_then(|value| value.to_str().ok());
        let nearest = forwarded.and_then(|list| list.rsplit(',').next()?.trim().parse().ok());
        nearest.or(Some(peer))
    }

    pub(crate) fn contain(&self, address: IpAddr) -> bool {
        // A listener on [::] sees IPv4 peers as mapped addresses.
        self.0.iter().any(|network| network.contains(&address.to_canonical()))
    }
}
