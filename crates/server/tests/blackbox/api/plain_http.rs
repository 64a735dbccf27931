//! Requests that are not HTTPS are refused, and only a trusted proxy is believed about how a request came in.

use std::io::Write;

use intake_test_support::{Client, create_request, patient, request, wait_for};

use crate::assert_problem;
use crate::fixtures::{TestApp, service};

#[test]
fn plain_http_gets_426() {
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

/// For a client that leaves the "s" out of the address.
#[test]
fn plain_http_to_the_https_listener_gets_426_and_marks_the_key() {
    let app = TestApp::start();
    let client = Client::plain(app.service.https.unwrap());
    let sent = [
        create_request(app.key(), &[], patient().to_string().as_bytes()),
        create_request(app.key(), &[("X-Forwarded-Proto", "https")], patient().to_string().as_bytes()),
        request("GET", "/settings/api-keys", &[], b""),
    ];
    for bytes in sent {
        assert_problem(&client.send(&bytes), 426, "Upgrade Required", "Requests must use HTTPS");
    }
    assert_eq!(app.patients(), 0);
    wait_for("the mark", || app.database.count("key_uses WHERE sent_in_clear_at IS NOT NULL") == 1);
    for (sent, status) in [(&b"SSH-2.0-client\r\n\r\n"[..], 400), (b"GET / HTTP/1.1\r\n\r\n", 400)] {
        assert_eq!(client.send(sent).status, status);
    }
    assert_eq!(app.create(&patient()).status, 201);
}

#[test]
fn an_operator_clears_the_mark_and_that_is_recorded() {
    let app = TestApp::start();
    let (id, key) = app.clinic.key();
    let clear = |id: &str| {
        let command = service(&app.database).argument("key").argument("clear-sent-in-clear").argument("--json");
        command.argument(id).run()
    };
    let was_marked = |output: &std::process::Output| {
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(value["id"], id.to_string());
        value["wasMarked"].as_bool().unwrap()
    };
    assert!(!was_marked(&clear(&id.to_string())));
    assert_eq!(app.service.plain_client().send(&create_request(&key, &[], b"{}")).status, 426);
    let marked = "key_uses WHERE sent_in_clear_at IS NOT NULL";
    wait_for("the mark", || app.database.count(marked) == 1);
    assert!(was_marked(&clear(&id.to_string())));
    assert_eq!(app.database.count(marked), 0);
    assert_eq!(app.database.count("audit_entries WHERE action = 'key_mark_cleared'"), 1);
    let unknown = clear("01980000-0000-7000-8000-000000000000");
    assert_eq!(unknown.status.code(), Some(1), "{}", String::from_utf8_lossy(&unknown.stderr));
    let page = app.member("ada@clinic.example").get("/settings/activity").text();
    assert!(page.contains("cleared the warning"), "{page}");
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

/// A proxy that gives up resets its connection, which by then has no address that could be trusted.
#[test]
fn what_a_proxy_sent_before_it_gave_up_is_not_taken_for_a_key_in_clear() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1"));
    let headers = [("X-Forwarded-Proto", "https"), ("X-Forwarded-For", "203.0.113.9")];
    let bytes = create_request(app.key(), &headers, patient().to_string().as_bytes());
    app.service.signal("STOP");
    for _ in 0..5 {
        let mut proxy = std::net::TcpStream::connect(app.service.http.unwrap()).unwrap();
        proxy.write_all(&bytes).unwrap();
        rustix::net::sockopt::set_socket_linger(&proxy, Some(std::time::Duration::ZERO)).unwrap();
    }
    app.service.signal("CONT");
    assert_eq!(app.service.plain_client().send(&bytes).status, 201);
    let metrics = app.service.probe("/metrics").text();
    assert!(metrics.contains("intake_keys_sent_in_clear_total 0"), "{metrics}");
}

#[test]
fn an_untrusted_peer_is_not_believed() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_TRUSTED_PROXIES", "10.0.0.0/8,::1"));
    let headers = [("X-Forwarded-Proto", "https")];
    let response = app.service.plain_client().send(&create_request(app.key(), &headers, b"{}"));
    assert_eq!(response.status, 426);
}
