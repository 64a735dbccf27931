//! Clients that stall, dribble or never read: each is let go in time, and nobody else notices.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use intake_test_support::{Connection, Response, create_request, patient, request, wait_for};

use crate::assert_problem;
use crate::fixtures::TestApp;

/// Longer than any client may stall.
const LIMIT: Duration = Duration::from_secs(13);
/// A client that is still connected by then stays, even on a busy machine: what is dribbled here takes longer.
const ENDLESS: Duration = Duration::from_secs(90);
/// A connection that is closed on purpose is closed long before one that waits for another request, which is after 75
/// seconds.
const CLOSED: Duration = Duration::from_secs(45);

/// Sends one byte every half second until the service has had enough, and gives its last word.
fn dribble(connection: &mut Connection, bytes: &[u8]) -> Response {
    let started = Instant::now();
    let mut bytes = bytes.iter();
    loop {
        // A refusal of the byte says less than the answer that came before it.
        let _ = connection.try_write(&[*bytes.next().unwrap()]);
        match connection.read_within(Duration::from_millis(500)) {
            Ok(answer) => return answer,
            Err(error) => assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}"),
        }
        assert!(started.elapsed() < ENDLESS, "the service is still waiting");
    }
}

#[test]
fn a_dribbled_head_ends_in_time_on_every_request_of_a_connection() {
    let app = TestApp::start();
    // Of more bytes than can be dribbled in that time.
    let head = create_request(app.key(), &[("X-Long", &"a".repeat(500))], b"");
    let create = create_request(app.key(), &[], patient().to_string().as_bytes());
    std::thread::scope(|scope| {
        for earlier_requests in [0, 1, 3] {
            let (app, head, create) = (&app, &head, &create);
            scope.spawn(move || {
                let mut connection = app.service.client().connect();
                for _ in 0..earlier_requests {
                    assert_eq!(connection.exchange(create).status, 201);
                }
                let answer = dribble(&mut connection, head);
                assert_problem(&answer, 408, "Request Timeout", "The request headers did not arrive in time");
                assert_eq!(answer.header("connection"), Some("close"));
                for header in ["x-request-id", "strict-transport-security", "cache-control", "date"] {
                    assert!(answer.header(header).is_some(), "{header}");
                }
                assert!(connection.is_closed_within(CLOSED));
            });
        }
    });
    let metrics = app.service.probe("/metrics").text();
    assert!(metrics.contains("intake_answers_total{status=\"408\"} 3\n"), "{metrics}");
}

#[test]
fn a_dribbled_body_ends_in_time() {
    let app = TestApp::start();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut connection = app.service.client().connect();
            connection.write(&create_request(app.key(), &[("Content-Length", "1000")], b""));
            let answer = dribble(&mut connection, &[b' '; 1000]);
            assert_problem(&answer, 408, "Request Timeout", "The body did not arrive in time");
        });
        scope.spawn(|| {
            let mut connection = app.service.client().connect();
            let form = [("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", "1000")];
            connection.write(&request("POST", "/sign-in", &form, b""));
            let answer = dribble(&mut connection, &[b'a'; 1000]);
            assert_eq!(answer.status, 400, "{}", answer.text());
        });
    });
}

#[test]
fn silence_ends_in_time_before_and_after_the_handshake() {
    let app = TestApp::start();
    let started = Instant::now();
    let mut unshaken = TcpStream::connect(app.service.https.unwrap()).unwrap();
    let mut half_shaken = TcpStream::connect(app.service.https.unwrap()).unwrap();
    half_shaken.write_all(&[22, 3, 1, 2]).unwrap();
    let mut plain = TcpStream::connect(app.service.http.unwrap()).unwrap();
    for silent in [&mut unshaken, &mut half_shaken, &mut plain] {
        silent.set_read_timeout(Some(ENDLESS)).unwrap();
        assert!(matches!(silent.read(&mut [0; 64]), Ok(0)), "closed without a word");
    }
    assert!(started.elapsed() < ENDLESS, "{:?}", started.elapsed());
}

#[test]
fn a_client_that_never_reads_is_let_go() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let mut socket = TcpStream::connect(app.service.http.unwrap()).unwrap();
    socket.set_write_timeout(Some(ENDLESS)).unwrap();
    let requests = request("GET", "/", &[], b"").repeat(1_000);
    let started = Instant::now();
    // The answers fill every buffer on the way, then requests are not read any more, then writing fails.
    while socket.write_all(&requests).is_ok() {
        assert!(started.elapsed() < 2 * ENDLESS, "the service is still reading");
    }
    wait_for("its end", || app.service.probe("/metrics").text().contains("intake_connections 0\n"));
}

#[test]
fn idle_connections_stay() {
    let app = TestApp::start();
    let create = create_request(app.key(), &[], patient().to_string().as_bytes());
    let mut connection = app.service.client().connect();
    assert_eq!(connection.exchange(&create).status, 201);
    std::thread::sleep(LIMIT);
    assert_eq!(connection.exchange(&create).status, 201);
}

#[test]
fn bytes_that_are_not_http_are_refused_with_a_problem() {
    let app = TestApp::start();
    let body = patient().to_string();
    let twice = [("Content-Length", "5"), ("Content-Length", "6")];
    let chunked = [("Transfer-Encoding", "chunked"), ("Content-Length", "5")];
    let no_host = format!("POST /api/v1/patients HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let two_hosts = request("GET", "/", &[("Host", "other.example")], b"");
    let (length, version, folded, host, form) = (
        "The request must state its length once, as Content-Length or Transfer-Encoding: chunked",
        "The request must be HTTP/1.1",
        "Each header of the request must be on one line",
        "The request must have one Host header",
        "The request is not well-formed HTTP",
    );
    let malformed = [
        (create_request(app.key(), &twice, b"hello"), length),
        (create_request(app.key(), &chunked, b"hello"), length),
        (create_request(app.key(), &[("Content-Length", "many")], b"hello"), length),
        (no_host.into_bytes(), host),
        (two_hosts, host),
        (b"\x00\xFF\x13garbage\r\n\r\n".to_vec(), form),
        (b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n".to_vec(), version),
        (b"GET / HTTP/1.2\r\nHost: localhost\r\n\r\n".to_vec(), version),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: a\r\n b\r\n\r\n".to_vec(), folded),
        (b"GET / HTTP/1.1\nHost: localhost\n\n".to_vec(), form),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nA: b\n\r\n".to_vec(), form),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\n".to_vec(), form),
    ];
    let create = create_request(app.key(), &[], body.as_bytes());
    for (bytes, detail) in malformed {
        // Behind a good request as well as alone.
        for before in [0, 1] {
            let mut connection = app.service.client().connect();
            connection.write(&[create.repeat(before), bytes.clone()].concat());
            for _ in 0..before {
                assert_eq!(connection.read().status, 201);
            }
            let answer = connection.read();
            assert_problem(&answer, 400, "Bad Request", detail);
            assert!(answer.header("x-request-id").is_some());
            assert_eq!(answer.header("connection"), Some("close"));
            assert!(connection.is_closed_within(CLOSED));
        }
    }
    let large = request("GET", "/", &[("X-Large", &"x".repeat(200_000))], b"");
    let mut connection = app.service.client().connect();
    let _ = connection.try_write(&large);
    let answer = connection.read();
    assert_problem(&answer, 431, "Request Header Fields Too Large", "The request headers are too large");
}

#[test]
fn a_body_that_is_not_chunked_as_announced_is_refused_in_words() {
    let app = TestApp::start();
    let body = patient().to_string();
    let size = format!("{:X}", body.len());
    let broken = [
        format!("0x{size}\r\n{body}\r\n0\r\n\r\n"),
        format!("FFFFFFFFFFFFFFFF{size}\r\n{body}\r\n0\r\n\r\n"),
        format!("{size}\n{body}\n0\n\n"),
        format!("{size};a\nb\r\n{body}\r\n0\r\n\r\n"),
        format!("{size}\r\n{body} \r\n0\r\n\r\n"),
        format!("{size}\r\n{body}\r\n0\r\nTrailer: a\n\r\n"),
    ];
    let head = create_request(app.key(), &[("Transfer-Encoding", "chunked")], b"");
    let create = create_request(app.key(), &[], body.as_bytes());
    for broken in broken {
        for before in [0, 1] {
            let mut connection = app.service.client().connect();
            connection
                .write(&[create.repeat(before), head.clone(), broken.clone().into_bytes(), create.clone()].concat());
            for _ in 0..before {
                assert_eq!(connection.read().status, 201);
            }
            let answer = connection.read();
            assert_problem(&answer, 400, "Bad Request", "The body could not be read");
            assert!(answer.header("x-request-id").is_some());
            assert_eq!(answer.header("connection"), Some("close"));
            assert!(connection.is_closed_within(CLOSED));
        }
    }
    assert_eq!(app.patients(), 6);
}

#[test]
fn a_target_on_another_host_is_refused() {
    let app = TestApp::start();
    let target = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes();
    let mut connection = app.service.client().connect();
    for other in ["http://other/livez", "https://localhost:1/sign-in", "https://me@localhost/sign-in"] {
        let answer = connection.exchange(&target(other));
        assert_problem(&answer, 400, "Bad Request", "The request target and the Host header name different hosts");
    }
    assert_eq!(connection.exchange(&target("https://LOCALHOST/sign-in")).status, 200);
}

#[test]
fn nothing_that_follows_the_last_request_is_carried_out() {
    let app = TestApp::start();
    let body = patient().to_string();
    let last = create_request(app.key(), &[("Connection", "close")], body.as_bytes());
    let mut connection = app.service.client().connect();
    connection.write(&[last, create_request(app.key(), &[], body.as_bytes())].concat());
    assert_eq!(connection.read().status, 201);
    while connection.try_read(true).is_ok() {}
    assert_eq!(app.patients(), 1);
}
