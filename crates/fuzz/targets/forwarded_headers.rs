//! Any forwarded headers: only a trusted proxy can mark plain HTTP as HTTPS.
#![no_main]

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderValue;
use actix_web::test::TestRequest;
use intake_fuzz::Application;
use libfuzzer_sys::fuzz_target;

thread_local!(static APPLICATION: &'static Application = Application::start("10.0.0.0/8"));

/// True if the peer is trusted, and the values of three headers.
type Input<'a> = (bool, Vec<&'a [u8]>, Vec<&'a [u8]>, &'a [u8]);

fuzz_target!(|input: Input<'_>| {
    let (is_trusted, protocols, addresses, forwarded) = input;
    let peer = if is_trusted { "10.1.2.3:4" } else { "11.1.2.3:4" };
    let mut request = TestRequest::get().uri("/nothing").peer_addr(peer.parse().expect("an address"));
    for (name, values) in
        [("X-Forwarded-Proto", &protocols), ("X-Forwarded-For", &addresses), ("Forwarded", &vec![forwarded])]
    {
        for value in values.iter().filter_map(|value| HeaderValue::from_bytes(value).ok()) {
            request = request.append_header((name, value));
        }
    }
    let last = protocols.iter().rev().find(|value| HeaderValue::from_bytes(value).is_ok());
    let nearest = last.and_then(|value| str::from_utf8(value).ok()).and_then(|value| value.rsplit(',').next());
    let is_https = is_trusted && nearest.is_some_and(|protocol| protocol.trim().eq_ignore_ascii_case("https"));
    let expected = if is_https { StatusCode::NOT_FOUND } else { StatusCode::UPGRADE_REQUIRED };
    APPLICATION.with(|application| assert_eq!(application.status(request), expected));
});
