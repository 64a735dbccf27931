//! Requests that are not HTTPS are refused, and only a trusted proxy is believed about how a request came in.

use intake_test_support::{create_request, patient, request, wait_for};

use crate::assert_problem;
use crate::fixtures::TestApp;

#[test]
fn plain_http_is_told_to_upgrade() {
    let app = TestApp::start();
    for bytes in [
        request("GET", "/", &[], b""),
        create_request(app.key(), &[], patient().to_string().as_bytes()),
        create_request(app.key(), &[("X-Forwarded-Proto", "https")], patient().to_string().as_bytes()),
    ] {
        let response = app.service.plain_client().send(&bytes);
        assert_problem(&response, 426, "Upgrade Required", "Requests must use HTTPS");
        assert_eq!(response.header("upgrade"), Some("TLS/1.2, HTTP/1.1"));
        assert_eq!(response.header("connection").map(str::to_lowercase).as_deref(), Some("upgrade"));
        assert_eq!(response.header("strict-transport-security"), None);
        assert_eq!(response.header("location"), None);
        assert_eq!(response.header("cache-control"), Some("no-store"));
        assert!(response.header("x-request-id").is_some());
    }
    assert_eq!(app.patients(), 0);
}

#[test]
fn a_key_sent_in_clear_is_marked() {
    let app = TestApp::start();
    assert_eq!(app.database.count("key_uses WHERE sent_in_clear_at IS NOT NULL"), 0);
    assert_eq!(app.service.plain_client().send(&create_request(app.key(), &[], b"{}")).status, 426);
    wait_for("the mark", || app.database.count("key_uses WHERE sent_in_clear_at IS NOT NULL") == 1);
}

#[test]
fn a_trusted_proxy_is_believed() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_TRUSTED_PROXIES", "10.0.0.0/8, 127.0.0.1"));
    let send = |protocol: &str| {
        let headers = [("X-Forwarded-Proto", protocol), ("X-Forwarded-For", "203.0.113.9")];
        app.service.plain_client().send(&create_request(app.key(), &headers, patient().to_string().as_bytes()))
    };
    for protocol in ["https", "HTTPS", "http, https"] {
        let response = send(protocol);
        assert_eq!(response.status, 201, "{protocol}");
        assert_eq!(response.header("strict-transport-security"), Some("max-age=31536000"));
    }
    for protocol in ["http", "", "https, http", "wss"] {
        assert_eq!(send(protocol).status, 426, "{protocol}");
    }
    let without = app.service.plain_client().send(&create_request(app.key(), &[], b"{}"));
    assert_eq!(without.status, 426);
}

#[test]
fn an_untrusted_peer_is_not_believed() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_TRUSTED_PROXIES", "10.0.0.0/8,::1"));
    let headers = [("X-Forwarded-Proto", "https")];
    let response = app.service.plain_client().send(&create_request(app.key(), &headers, b"{}"));
    assert_eq!(response.status, 426);
}
