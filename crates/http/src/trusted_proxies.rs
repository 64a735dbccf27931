//! The proxies in front of the service that are believed about how a request came in and from where.

use std::net::IpAddr;

use ipnet::IpNet;

/// The networks whose `X-Forwarded` headers are believed.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Trusts every address of these networks.
    #[must_use]
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// Returns whether nobody is trusted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether any address at all is trusted.
    #[must_use]
    pub fn trust_everyone(&self) -> bool {
        self.0.iter().any(|network| network.prefix_len() == 0)
    }

    pub(crate) fn contain(&self, address: IpAddr) -> bool {
        // A listener on [::] sees IPv4 peers as mapped addresses.
        self.0.iter().any(|network| network.contains(&address.to_canonical()))
    }
}
