//! One line in the log for each request, on a target of its own, so that it can be turned on and off alone: who asked,
//! from which address, for what, how it ended and how long it took. It names whatever callers can choose by its kind: a
//! path by its route, a method that does not exist as such.

use std::net::IpAddr;
use std::time::Duration;

use actix_web::http::Method;
use actix_web::http::header::{HeaderMap, HeaderName};
use actix_web::{HttpRequest, web};
use intake_domain::{KeyHolder, REPLAYED, RefusalReason};
use intake_metrics::{RequestSpan, TraceParent};
use tracing::Level;

use crate::answer_note::Note;
use crate::route_name::Route;
use crate::trusted_proxies::TrustedProxies;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Facts that the line takes from a request before it is served.
pub(crate) struct Asked {
    method: &'static str,
    address: Option<IpAddr>,
    trace_id: Option<String>,
    /// None: traces are not recorded.
    span_id: Option<String>,
}

impl Asked {
    /// None: nobody wants the line.
    pub(crate) fn of(request: &HttpRequest, span: &RequestSpan) -> Option<Self> {
        if !tracing::enabled!(target: "intake::requests", Level::INFO) {
            return None;
        }
        let (trace_id, span_id) = span.ids().unzip();
        Some(Self {
            method: name(request.method()),
            address: request.app_data::<web::Data<TrustedProxies>>().and_then(|it| it.client_address(request)),
            trace_id: trace_id.or_else(|| Some(trace_parent(request.headers())?.trace_id.to_owned())),
            span_id,
        })
    }

    /// Writes the line, with the status and what the answer notes.
    pub(crate) fn log(
        &self,
        route: &Route,
        request_id: &str,
        status: u16,
        note: &Note,
        holder: Option<KeyHolder>,
        time: Duration,
    ) {
        tracing::info!(
            target: "intake::requests",
            method = self.method,
            route = route.as_str(),
            status,
            reason = note.refusal.map(RefusalReason::as_str),
            fields = note.refusal.map(|_| note.fields.join(",")).filter(|fields| !fields.is_empty()),
            simulated = note.is_simulated.then_some(true),
            replayed = note.fields.contains(&REPLAYED).then_some(true),
            duration_ms = time.as_micros() as f64 / 1_000.0,
            request_id,
            address = self.address.map(tracing::field::display),
            key_id = holder.map(|holder| tracing::field::display(holder.key_id)),
            organisation_id = holder.map(|holder| tracing::field::display(holder.organisation_id)),
            trace_id = self.trace_id.as_deref(),
            span_id = self.span_id.as_deref(),
            "answered"
        );
    }
}

/// Any method that HTTP does not define.
pub(crate) fn name(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "HEAD" => "HEAD",
        "OPTIONS" => "OPTIONS",
        "CONNECT" => "CONNECT",
        "PATCH" => "PATCH",
        "TRACE" => "TRACE",
        _ => "other",
    }
}

/// The span of the caller that the request is part of, if it says so once and well.
pub(crate) fn trace_parent(headers: &HeaderMap) -> Option<TraceParent<'_>> {
    let mut values = headers.get_all(TRACEPARENT);
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    TraceParent::parse(value.to_str().ok()?)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    #[test]
    fn a_caller_that_names_two_spans_names_none() {
        let value = HeaderValue::from_static("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        let mut headers = HeaderMap::new();
        headers.append(TRACEPARENT, value.clone());
        assert!(trace_parent(&headers).is_some());
        headers.append(TRACEPARENT, value);
        assert_eq!(trace_parent(&headers), None);
    }

    #[test]
    fn a_method_that_does_not_exist_is_not_named() {
        assert_eq!(name(&Method::POST), "POST");
        assert_eq!(name(&Method::from_bytes(b"Canary").unwrap()), "other");
    }
}
