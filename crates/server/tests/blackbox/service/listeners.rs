//! The listeners: TLS with HTTP/1.1, the probes, and clients that do not speak as they should.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use intake_test_support::{TestDatabase, complaint_in, create_request, patient, request, wait_for};

use crate::complaint;
use crate::fixtures::{TestApp, program, service};

/// A connection that is closed on purpose is closed long before one that waits for another request, which is after 75
/// seconds.
const CLOSED: Duration = Duration::from_secs(45);

#[test]
fn probes_say_that_the_service_lives_and_is_ready() {
    let app = TestApp::start();
    for path in ["/livez", "/readyz"] {
        wait_for(path, || app.service.probe(path).status == 200);
    }
    assert_eq!(app.service.probe("/api/v1/patients").status, 404);
}

#[test]
fn a_service_with_too_few_files_does_not_start() {
    let database = TestDatabase::new();
    let line = complaint(service(&database).open_files(128));
    assert!(line.contains("open files are limited to 128, and the service needs 320"), "{line}");
}

#[test]
fn answers_are_counted_by_status() {
    let app = TestApp::start();
    for body in [patient().to_string(), patient().to_string(), "{".to_owned()] {
        let _ = app.send_body(body);
    }
    let _ = app.service.plain_client().send(&request("GET", "/", &[], b""));
    let metrics = app.service.probe("/metrics").text();
    for line in ["{status=\"201\"} 2", "{status=\"400\"} 1", "{status=\"426\"} 1"] {
        assert!(metrics.contains(&format!("\nintake_answers_total{line}\n")), "{metrics}");
    }
}

#[test]
fn the_chosen_ports_are_printed() {
    let app = TestApp::start();
    let output = app.service.output();
    for address in [app.service.https.unwrap(), app.service.http.unwrap(), app.service.admin] {
        assert!(output.contains(&address.to_string()));
    }
}

#[test]
fn a_taken_port_is_named_by_its_setting() {
    let app = TestApp::start();
    for (setting, address) in
        [("INTAKE_HTTPS_ADDR", app.service.https.unwrap()), ("INTAKE_ADMIN_ADDR", app.service.admin)]
    {
        let output = program().database(&app.database).setting(setting, address.to_string()).run();
        assert_eq!(output.status.code(), Some(1));
        let complaint = complaint_in(&output.stderr);
        assert!(complaint.starts_with(&format!("intake: {setting}: cannot listen on")), "{complaint}");
        assert!(complaint.ends_with("is another intake running? Stop it, or choose another address"), "{complaint}");
    }
}

#[test]
fn all_taken_ports_are_named_at_once() {
    let app = TestApp::start();
    let mut program = program().database(&app.database);
    let taken = [
        ("INTAKE_HTTPS_ADDR", app.service.https.unwrap()),
        ("INTAKE_HTTP_ADDR", app.service.http.unwrap()),
        ("INTAKE_ADMIN_ADDR", app.service.admin),
    ];
    for (setting, address) in taken {
        program = program.setting(setting, address.to_string());
    }
    let complaint = complaint_in(&program.run().stderr);
    for (setting, address) in taken {
        assert!(complaint.contains(&format!("{setting}: cannot listen on {address}: ")), "{complaint}");
    }
    assert!(complaint.ends_with("is another intake running? Stop it, or choose other addresses"), "{complaint}");
}

#[test]
fn garbage_harms_nobody() {
    let app = TestApp::start();
    for address in [app.service.https.unwrap(), app.service.http.unwrap(), app.service.admin] {
        // A handshake of TLS is of the kind 22, an alert of the kind 21. Whatever else comes to that listener is taken
        // for plain HTTP. Blank lines before a request are no part of it.
        for (garbage, over_tls, in_clear) in [
            (&b"\x16garbage\r\n\r\n"[..], &b"\x15"[..], &b"HTTP/1.1 400 "[..]),
            (b"\x00\xFF\x13garbage\r\n\r\n", b"HTTP/1.1 400 ", b"HTTP/1.1 400 "),
            (b"GET / HTTP/9.9\r\n\r\n", b"HTTP/1.1 400 ", b"HTTP/1.1 400 "),
            (b"\r\n\r\n\r\n", b"", b""),
            (&[b'A'; 200_000], b"HTTP/1.1 431 ", b"HTTP/1.1 431 "),
        ] {
            let mut socket = TcpStream::connect(address).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let _ = socket.write_all(garbage);
            let _ = socket.shutdown(std::net::Shutdown::Write);
            let mut answer = Vec::new();
            // What was not read of the garbage can cut the answer off with a reset.
            let is_whole = socket.read_to_end(&mut answer).is_ok();
            let expected = if Some(address) == app.service.https { over_tls } else { in_clear };
            let is_as_expected = answer.starts_with(expected) && answer.is_empty() == expected.is_empty();
            let is_cut_off = !is_whole && answer.is_empty();
            assert!(is_as_expected || is_cut_off, "{address}: {:?}", String::from_utf8_lossy(&answer));
        }
    }
    assert_eq!(app.create(&patient()).status, 201);
}

#[test]
fn a_body_that_never_comes_ends_the_request() {
    let app = TestApp::start();
    let mut connection = app.service.client().connect();
    connection.write(&create_request(app.key(), &[("Content-Length", "100")], b""));
    let response = connection.read();
    crate::assert_problem(&response, 408, "Request Timeout", "The body did not arrive in time");
    assert!(connection.is_closed_within(CLOSED));
}

#[test]
fn one_connection_serves_many_requests() {
    let app = TestApp::start();
    let mut connection = app.service.client().connect();
    for _ in 0..100 {
        assert_eq!(connection.exchange(&create_request(app.key(), &[], patient().to_string().as_bytes())).status, 201);
    }
    let http_1_0 = String::from_utf8(request("OPTIONS", "/api/v1/patients", &[], b"")).unwrap().replace("1.1", "1.0");
    assert_eq!(connection.exchange(http_1_0.as_bytes()).status, 204);
    assert!(connection.is_closed_within(CLOSED));
}

#[test]
fn a_request_to_upgrade_the_protocol_is_served_without_it() {
    let app = TestApp::start();
    for upgrade in ["websocket", "h2c"] {
        let mut connection = app.service.client().connect();
        let headers = [("Connection", "Upgrade"), ("Upgrade", upgrade)];
        connection.write(&create_request(app.key(), &headers, patient().to_string().as_bytes()));
        assert_eq!(connection.read().status, 201, "{upgrade}");
        assert!(connection.is_closed_within(CLOSED), "{upgrade}");
    }
}

#[test]
fn a_client_that_comes_back_goes_on_with_its_tls_session() {
    let app = TestApp::start();
    let client = app.service.client();
    assert!(!client.resumes(), "the first time there is nothing to go on with");
    // The tickets come behind the handshake, with the first answer.
    assert_eq!(client.send(&create_request(app.key(), &[], patient().to_string().as_bytes())).status, 201);
    assert!(client.resumes());
    assert!(!app.service.client().resumes(), "another client begins anew");
}
