//! Requests to the provider of single sign-on: over TLS, to the address that was meant, within a time and of a size.

use std::time::{Duration, Instant};

use openidconnect::{HttpRequest, HttpResponse};
use ureq::Agent;

use crate::client_tls::client_tls;

/// Larger than what any provider says of itself: its keys may come with chains of certificates.
const BODY_MAX: u64 = 512 * 1024;

/// A client for requests to the provider.
pub(crate) struct ProviderHttp(Agent);

/// Reason why a request was not answered, with what the answer lacked.
#[derive(Debug, thiserror::Error)]
#[error("the provider did not answer")]
pub(crate) struct NoAnswer(#[from] ureq::Error);

impl ProviderHttp {
    /// Over TLS alone, unless the provider is on this machine and for development.
    pub(crate) fn new(is_tls: bool) -> Self {
        let agent = Agent::config_builder()
            .tls_config(client_tls())
            .https_only(is_tls)
            // A redirection could lead the client's secret anywhere.
            .max_redirects(0)
            .http_status_as_error(false)
            .user_agent(concat!("intake/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Self(agent)
    }

    /// Returns a client for requests, each of which has the time that is left.
    pub(crate) fn until(&self, deadline: Instant) -> impl Fn(HttpRequest) -> Result<HttpResponse, NoAnswer> {
        move |request| {
            // None would be no limit.
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let request = self.0.configure_request(request).timeout_global(Some(left)).build();
            let (head, mut body) = self.0.run(request)?.into_parts();
            let body = body.with_config().limit(BODY_MAX).read_to_vec()?;
            Ok(HttpResponse::from_parts(head, body))
        }
    }
}
