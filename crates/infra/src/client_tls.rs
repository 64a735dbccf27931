//! TLS to servers that are not ours, by what this machine trusts.

use std::sync::Arc;

use ureq::tls::{RootCerts, TlsConfig, TlsProvider};

/// The TLS settings of requests to such servers.
#[must_use]
pub fn client_tls() -> TlsConfig {
    TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::PlatformVerifier)
        .build()
}
