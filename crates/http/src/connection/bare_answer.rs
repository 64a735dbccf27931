//! Answers that actix-http makes by itself to requests that it cannot read: a status and nothing else. Here they get
//! the body and the headers that every answer has.

use std::io::Write;

use actix_web::body::MessageBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderMap, HttpDate};

use crate::connection::framing::Fault;
use crate::connection::progress::Progress;
use crate::envelope::{Exchange, finish};
use crate::problem::Problem;
use intake_edge as edge;

/// Longer than any bare answer, shorter than any full one.
const LENGTH_MAX: usize = 160;

/// Returns where a bare refusal begins. It is the last thing written to its connection.
pub(crate) fn position(bytes: &[u8]) -> Option<usize> {
    // Nearly every answer ends with a body.
    if !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let from = bytes.len().saturating_sub(LENGTH_MAX);
    let tail = String::from_utf8_lossy(bytes.get(from..)?);
    let start = tail.rfind("HTTP/1.1 ")?;
    let answer = tail.get(start..)?;
    let is_refusal = answer.starts_with("HTTP/1.1 4") || answer.starts_with("HTTP/1.1 5");
    let is_bare = is_refusal && !answer.contains("x-request-id");
    is_bare.then(|| bytes.len().checked_sub(answer.len())).flatten()
}

/// The full answer in place of a bare one, which says what is malformed.
pub(crate) fn in_full(bare: &[u8], fault: Fault, on: &Progress) -> Vec<u8> {
    let status = bare.get(9..12).and_then(|status| StatusCode::from_bytes(status).ok());
    let problem = match status {
        Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE) => Problem::HeadTooLarge,
        Some(status) if status.is_server_error() => Problem::Unexpected("actix-http failed".into()),
        _ => malformed(fault),
    };
    write(&problem, on)
}

fn malformed(fault: Fault) -> Problem {
    match fault {
        Fault::Length => Problem::Malformed(
            "The request must state its length once, as Content-Length or Transfer-Encoding: chunked".into(),
        ),
        Fault::Version => Problem::Malformed("The request must be HTTP/1.1".into()),
        Fault::Folded => Problem::Malformed("Each header of the request must be on one line".into()),
        Fault::Host => Problem::Malformed("The request must have one Host header".into()),
        Fault::Form => Problem::Malformed("The request is not well-formed HTTP".into()),
    }
}

/// The bytes of an answer that belongs to no request.
pub(crate) fn write(problem: &Problem, on: &Progress) -> Vec<u8> {
    let mut response = problem.respond(&HeaderMap::new());
    finish(&mut response, Exchange::without_request(on.is_secure), Some(on));
    let mut text = format!("HTTP/1.1 {} {}\r\n", response.status().as_u16(), response.head().reason()).into_bytes();
    for (name, value) in response.headers() {
        let _ = write!(text, "{name}: ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    let date = HttpDate::from(std::time::SystemTime::from(edge::now()));
    let body = response.into_body().try_into_bytes().unwrap_or_default();
    let _ = write!(text, "connection: close\r\ncontent-length: {}\r\ndate: {date}\r\n\r\n", body.len());
    text.extend_from_slice(&body);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARE: &[u8] =
        b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\ndate: Sat, 21 Nov 2026 10:00:00 GMT\r\n\r\n";

    #[test]
    fn a_bare_refusal_is_found_alone_and_behind_an_answer() {
        let whole = b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(position(BARE), Some(0));
        assert_eq!(position(&[whole, BARE].concat()), Some(whole.len()));
        assert_eq!(position(whole), None);
        assert_eq!(position(b"HTTP/1.1 100 Continue\r\n\r\n"), None);
        assert_eq!(position(b"HTTP/1.1 404 Not Found\r\nx-request-id: 1\r\n\r\n"), None);
        assert_eq!(position(b""), None);
    }
}
