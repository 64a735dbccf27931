//! The listeners: TLS with HTTP/1.1, the probes, and clients that do not speak as they should.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use intake_test_support::{create_request, patient, request};

use crate::{Door, program};

#[test]
fn probes_tell_that_the_service_lives_and_is_ready() {
    let door = Door::open();
    for path in ["/livez", "/readyz"] {
        assert_eq!(door.service.probe(path).status, 200, "{path}");
    }
    assert_eq!(door.service.probe("/api/v1/patients").status, 404);
}

#[test]
fn answers_are_counted_by_status() {
    let door = Door::open();
    for body in [patient().to_string(), patient().to_string(), "{".to_owned()] {
        let _ = door.send_body(body);
    }
    let _ = door.service.plain_client().send(&request("GET", "/", &[], b""));
    let metrics = door.service.probe("/metrics").text();
    for line in ["{status=\"201\"} 2", "{status=\"400\"} 1", "{status=\"426\"} 1"] {
        assert!(metrics.contains(&format!("\nintake_answers_total{line}\n")), "{metrics}");
    }
}

#[test]
fn the_chosen_ports_are_told() {
    let door = Door::open();
    let output = door.service.output();
    for address in [door.service.https.unwrap(), door.service.http.unwrap(), door.service.admin] {
        assert!(output.contains(&address.to_string()));
    }
}

#[test]
fn a_port_that_is_taken_is_told_by_its_setting() {
    let door = Door::open();
    for (setting, address) in
        [("INTAKE_HTTPS_ADDR", door.service.https.unwrap()), ("INTAKE_ADMIN_ADDR", door.service.admin)]
    {
        let output = program().database(&door.database).setting(setting, address.to_string()).run();
        assert_eq!(output.status.code(), Some(1));
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(
            complaint.lines().last().unwrap().starts_with(&format!("intake: {setting}: cannot listen on")),
            "{complaint}"
        );
    }
}

#[test]
fn garbage_harms_nobody() {
    let door = Door::open();
    for address in [door.service.https.unwrap(), door.service.http.unwrap(), door.service.admin] {
        for garbage in
            [&b"\x00\xFF\x13garbage\r\n\r\n"[..], b"GET / HTTP/9.9\r\n\r\n", b"\r\n\r\n\r\n", &[b'A'; 200_000]]
        {
            let mut socket = TcpStream::connect(address).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let _ = socket.write_all(garbage);
            let _ = socket.shutdown(std::net::Shutdown::Write);
            let mut answer = Vec::new();
            let _ = socket.read_to_end(&mut answer);
            assert!(!answer.starts_with(b"HTTP/1.1 2"));
        }
    }
    assert_eq!(door.create(&patient()).status, 201);
}

#[test]
fn a_body_that_never_comes_ends_the_request() {
    let door = Door::open();
    let mut connection = door.service.client().connect();
    connection.write(&create_request(&door.key, &[("Content-Length", "100")], b""));
    let response = connection.read();
    crate::assert_problem(&response, 408, "Request Timeout", "The body did not arrive in time");
    assert!(connection.is_closed_within(Duration::from_secs(5)));
}

#[test]
fn one_connection_serves_many_requests() {
    let door = Door::open();
    let mut connection = door.service.client().connect();
    for _ in 0..100 {
        assert_eq!(connection.exchange(&create_request(&door.key, &[], patient().to_string().as_bytes())).status, 201);
    }
    let http_1_0 = String::from_utf8(request("OPTIONS", "/api/v1/patients", &[], b"")).unwrap().replace("1.1", "1.0");
    assert_eq!(connection.exchange(http_1_0.as_bytes()).status, 204);
    assert!(connection.is_closed_within(Duration::from_secs(5)));
}

#[test]
fn who_asks_for_another_protocol_is_served_in_this_one() {
    let door = Door::open();
    for upgrade in ["websocket", "h2c"] {
        let mut connection = door.service.client().connect();
        let headers = [("Connection", "Upgrade"), ("Upgrade", upgrade)];
        connection.write(&create_request(&door.key, &headers, patient().to_string().as_bytes()));
        assert_eq!(connection.read().status, 201, "{upgrade}");
        assert!(connection.is_closed_within(Duration::from_secs(5)), "{upgrade}");
    }
}

#[test]
fn a_client_that_comes_back_goes_on_with_its_tls_session() {
    let door = Door::open();
    let client = door.service.client();
    assert!(!client.resumes(), "the first time there is nothing to go on with");
    // The tickets come behind the handshake, with the first answer.
    assert_eq!(client.send(&create_request(&door.key, &[], patient().to_string().as_bytes())).status, 201);
    assert!(client.resumes());
    assert!(!door.service.client().resumes(), "another client begins anew");
}
