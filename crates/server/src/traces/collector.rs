//! Requests to the collector, each within a time, and what the log says of a collector that takes nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use intake_infra::client_tls;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use ureq::Agent;

/// Time from the look-up of its name to the last byte of its answer. A collector that takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Far more than a collector has to say.
const ANSWER_MAX: u64 = 64 * 1024;

/// A client for requests to the collector.
#[derive(Debug)]
pub(crate) struct Collector {
    agent: Agent,
    /// True if it took nothing when it was last tried: logged when it changes, not at every try.
    is_failing: AtomicBool,
}

impl Collector {
    pub(crate) fn new() -> Self {
        let agent = Agent::config_builder()
            .tls_config(client_tls())
            .timeout_global(Some(TIMEOUT))
            // A redirection could lead the headers of OTEL_EXPORTER_OTLP_HEADERS anywhere.
            .max_redirects(0)
            .http_status_as_error(false)
            .user_agent(concat!("intake/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Self { agent, is_failing: AtomicBool::new(false) }
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ureq::Error> {
        let (head, body) = request.into_parts();
        let (head, mut body) = self.agent.run(Request::from_parts(head, body.as_ref()))?.into_parts();
        let body = body.with_config().limit(ANSWER_MAX).read_to_vec()?;
        Ok(Response::from_parts(head, body.into()))
    }

    fn log(&self, sent: &Result<Response<Bytes>, ureq::Error>) {
        let fault = match sent {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("it answers {}", answer.status())),
            Err(error) => Some(error.to_string()),
        };
        match (fault, self.is_failing.load(Ordering::Relaxed)) {
            (Some(error), false) => tracing::warn!(error, "the collector takes no traces: they are dropped"),
            (None, true) => tracing::info!("the collector takes traces again"),
            _ => return,
        }
        self.is_failing.fetch_not(Ordering::Relaxed);
    }
}

#[async_trait]
impl HttpClient for Collector {
    /// Blocks its thread, which does nothing else.
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent = self.send(request);
        self.log(&sent);
        Ok(sent?)
    }
}
