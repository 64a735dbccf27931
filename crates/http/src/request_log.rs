//! One line in the log for each request, on a target of its own, so that it can be turned on and off alone: who asked,
//! from which address, for what, how it ended and how long it took. It names whatever callers can choose by its kind: a
//! path by its route, a method that does not exist as such.

use std::net::IpAddr;
use std::time::Duration;

use actix_web::http::Method;
use actix_web::http::header::{HeaderMap, HeaderName};
use actix_web::{HttpRequest, web};
use intake_domain::KeyHolder;
use tracing::Level;

use crate::route_name::Route;
use crate::trusted_proxies::TrustedProxies;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// What the line takes from a request before that is served.
pub(crate) struct Asked {
    method: &'static str,
    address: Option<IpAddr>,
    trace_id: Option<String>,
}

impl Asked {
    /// None: nobody wants the line.
    pub(crate) fn of(request: &HttpRequest) -> Option<Self> {
        let is_on = tracing::enabled!(target: "intake::requests", Level::INFO);
        let address = || request.app_data::<web::Data<TrustedProxies>>()?.client_address(request);
        is_on.then(|| Self {
            method: name(request.method()),
            address: address(),
            trace_id: trace_id(request.headers()),
        })
    }

    /// Writes the line.
    pub(crate) fn log(&self, route: &Route, request_id: &str, status: u16, holder: Option<KeyHolder>, time: Duration) {
        tracing::info!(
            target: "intake::requests",
            method = self.method,
            route = route.as_str(),
            status,
            duration_ms = time.as_micros() as f64 / 1_000.0,
            request_id,
            address = self.address.map(tracing::field::display),
            key_id = holder.map(|holder| tracing::field::display(holder.key_id)),
            organisation_id = holder.map(|holder| tracing::field::display(holder.organisation_id)),
            trace_id = self.trace_id.as_deref(),
            "answered"
        );
    }
}

/// Any method that HTTP does not define.
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
