//! One line in the log for each request, on a target of its own, so that it can be turned on and off alone: who asked for
//! what, how it ended and how long it took. It names whatever callers can choose by its kind: a path by its route, a method
//! that does not exist as such.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::Method;
use actix_web::http::header::{HeaderMap, HeaderName};
use intake_domain::KeyHolder;
use tracing::Level;

use crate::route::Route;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// What the line takes from a request before that is served.
pub(crate) struct Asked {
    method: &'static str,
    trace_id: Option<String>,
}

/// Whether the lines are wanted.
pub(crate) fn is_on() -> bool {
    tracing::enabled!(target: "intake::requests", Level::INFO)
}

impl Asked {
    /// None: nobody wants the line.
    pub(crate) fn of(method: &Method, headers: &HeaderMap) -> Option<Self> {
        is_on().then(|| Self { method: name(method), trace_id: trace_id(headers) })
    }

    /// Writes the line. The holder of the key, where it is known, is in the answer's extensions.
    pub(crate) fn log<B>(&self, route: &Route, request_id: &str, response: &HttpResponse<B>, time: Duration) {
        let extensions = response.extensions();
        let holder = extensions.get::<KeyHolder>();
        tracing::info!(
            target: "intake::requests",
            method = self.method,
            route = route.as_str(),
            status = response.status().as_u16(),
            duration_ms = time.as_micros() as f64 / 1_000.0,
            request_id,
            key_id = holder.map(|holder| tracing::field::display(holder.key_id)),
            organisation_id = holder.map(|holder| tracing::field::display(holder.organisation_id)),
            trace_id = self.trace_id.as_deref(),
            "answered"
        );
    }
}

/// Every method that is not HTTP's is somebody's invention.
fn name(method: &Method) -> &'static str {
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

/// The trace that the request is part of (W3C Trace Context), if it says so once and well: `00-TRACE-PARENT-FLAGS`.
fn trace_id(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(TRACEPARENT);
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let mut parts = value.to_str().ok()?.split('-');
    let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let is_id = |text: &str, length: usize| is_hex(text, length) && text.bytes().any(|byte| byte != b'0');
    // Later versions may have further parts.
    let is_version = is_hex(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
    (is_version && is_id(trace, 32) && is_id(parent, 16) && is_hex(flags, 2)).then(|| trace.to_owned())
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    fn found(values: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(TRACEPARENT, HeaderValue::from_str(value).unwrap());
        }
        trace_id(&headers)
    }

    #[test]
    fn a_trace_is_taken_from_a_header_that_is_well_formed() {
        let usual = format!("00-{TRACE}-00f067aa0ba902b7-01");
        let later = format!("01-{TRACE}-00f067aa0ba902b7-01-more");
        for value in [&usual, &later] {
            assert_eq!(found(&[value]).as_deref(), Some(TRACE), "{value}");
        }
        for value in [
            String::new(),
            TRACE.to_owned(),
            format!("{usual}-more"),
            usual.to_uppercase(),
            usual.replacen("00", "ff", 1),
            usual.replace(TRACE, &"0".repeat(32)),
            usual.replace("00f067aa0ba902b7", &"0".repeat(16)),
            usual.replace(TRACE, "Canary-Bird"),
        ] {
            assert_eq!(found(&[&value]), None, "{value}");
        }
        assert_eq!(found(&[&usual, &usual]), None);
    }

    #[test]
    fn a_method_that_does_not_exist_is_not_named() {
        assert_eq!(name(&Method::POST), "POST");
        assert_eq!(name(&Method::from_bytes(b"Canary").unwrap()), "other");
    }
}
