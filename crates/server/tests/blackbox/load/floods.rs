//! Clients that take more than they need: memory, places, time. Each gets its bounds, and nobody else notices.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use intake_test_support::{Client, Connection, create_request, patient, request, wait_for};

use crate::fixtures::{TestApp, alone, in_time, time_of};

/// Whatever a connection does, it costs the service no more.
const MEMORY_OF_A_CONNECTION: usize = 1024 * 1024;
/// Long enough to be served at once on a machine that has other work.
const AT_ONCE: Duration = Duration::from_secs(2);
/// Time after which a connection that is not cut off never is.
const ENDLESS: Duration = Duration::from_secs(60);

/// Sends requests for as long as they are taken, up to a limit, and reads nothing.
fn pour(connection: &mut Connection, requests: &[u8], most: usize) {
    let mut sent = 0;
    while sent < most && connection.try_write(requests).is_ok() {
        sent += requests.len();
    }
}

/// Returns whether the service computes for less than a quarter of some time.
fn computes_little(app: &TestApp) -> bool {
    let (before, some_time) = (app.service.processor_time(), Duration::from_millis(500));
    std::thread::sleep(some_time);
    app.service.processor_time() - before < some_time / 4
}

/// Returns what it costs to connect this many clients that send requests and read no answer; and the clients.
fn memory_of_unread_answers(app: &TestApp, client: &Client, requests: &[u8]) -> (usize, Vec<Connection>) {
    const CLIENTS: usize = 24;
    let others = app.service.plain_client();
    let before = app.service.memory();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| client.connect()).collect();
    clients.iter_mut().for_each(|client| client.stop_waiting().unwrap());
    let mut most = 0;
    for _ in 0..3 {
        for client in &mut clients {
            pour(client, requests, 1024 * 1024);
            most = most.max(app.service.memory());
        }
        std::thread::sleep(Duration::from_millis(200));
        in_time(AT_ONCE, || time_of(|| assert_eq!(others.send(&request("GET", "/", &[], b"")).status, 426)));
    }
    (most.saturating_sub(before) / CLIENTS, clients)
}

#[test]
fn answers_that_nobody_reads_do_not_fill_the_memory() {
    let _alone = alone();
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let style = request("GET", "/assets/style.css", &[], b"").repeat(1_000);
    let crowded = b"GET / HTTP/1.1\r\nHost:\r\n\r\n".repeat(2_000);
    let mut headers = String::new();
    for number in 0..90 {
        headers.push_str(&format!("{number}:\r\n"));
    }
    let headers = format!("GET / HTTP/1.1\r\nHost:\r\n{headers}\r\n").repeat(200);
    let create = create_request(app.key(), &[], patient().to_string().as_bytes()).repeat(200);
    let (plain, tls) = (app.service.plain_client(), app.service.client());
    for (what, requests, client) in [
        ("files", &style, &plain),
        ("files over TLS", &style, &tls),
        ("small requests", &crowded, &plain),
        ("many headers", &headers.into_bytes(), &tls),
        ("patients", &create, &tls),
    ] {
        // Before the clients are let go.
        in_time(Duration::from_secs(7), || {
            let (each, clients) = memory_of_unread_answers(&app, client, requests);
            assert!(each < MEMORY_OF_A_CONNECTION, "{what}: {each} bytes for each connection");
            let computed = time_of(|| wait_for("an end of computing", || computes_little(&app)));
            drop(clients);
            computed
        });
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let body = patient().to_string();
    for client in [app.service.client(), app.service.client()] {
        let mut connection = client.connect();
        let mut sent = Vec::new();
        for number in 0..300 {
            let id = format!("number-{number}");
            let headers = [("X-Request-Id", id.as_str())];
            match number % 3 {
                0 => sent.extend(create_request(app.key(), &headers, body.as_bytes())),
                1 => sent.extend(request("GET", "/assets/style.css", &headers, b"")),
                _ => {
                    let chunked = [headers[0], ("Transfer-Encoding", "chunked")];
                    sent.extend(create_request(app.key(), &chunked, b""));
                    let (first, rest) = body.split_at(20);
                    let (first, rest) =
                        (format!("14\r\n{first}\r\n"), format!("{:X}\r\n{rest}\r\n0\r\n\r\n", rest.len()));
                    sent.extend([first, rest].concat().into_bytes());
                }
            }
        }
        // In pieces that end anywhere.
        for piece in sent.chunks(7_919) {
            connection.write(piece);
        }
        for number in 0..300 {
            let answer = connection.read();
            assert_eq!(answer.status, if number % 3 == 1 { 200 } else { 201 }, "{number}: {}", answer.text());
            assert_eq!(answer.header("x-request-id"), Some(format!("number-{number}").as_str()));
        }
    }
    assert_eq!(app.patients(), 400);
}

#[test]
fn a_refused_body_without_an_end_is_cut_off() {
    let app = TestApp::start();
    let chunked = [("Transfer-Encoding", "chunked")];
    let sized = [("Content-Length", "1000000000000")];
    for (client, headers) in [
        (app.service.plain_client(), chunked),
        (app.service.plain_client(), sized),
        (app.service.client(), chunked),
        (app.service.client(), sized),
    ] {
        let mut connection = client.connect();
        connection.write(&request("POST", "/nowhere", &headers, b""));
        let part = [b"8000\r\n".to_vec(), vec![b'a'; 0x8000], b"\r\n".to_vec()].concat();
        let started = Instant::now();
        while connection.try_write(&part).is_ok() {
            assert!(started.elapsed() < ENDLESS, "the service is still reading");
        }
    }
}

/// Opens connections that say nothing, or nothing more after the handshake.
fn crowd(client: &Client, most: usize) -> Vec<TcpStream> {
    (0..most).filter_map(|_| client.try_open_socket().ok()).collect()
}

fn is_served(client: &Client, create: &[u8]) -> bool {
    let answer = client.try_connect().and_then(|mut connection| {
        connection.try_write(create)?;
        connection.try_read(true)
    });
    answer.is_ok_and(|answer| answer.status == 201)
}

#[test]
fn idle_connections_from_one_address_delay_nobody() {
    let app = TestApp::start_with(|builder| builder.open_files(340));
    let create = create_request(app.key(), &[], patient().to_string().as_bytes());
    let mut earlier = app.service.client().from_address([127, 0, 0, 3]).connect();
    assert_eq!(earlier.exchange(&create).status, 201);
    for silent in [app.service.client(), app.service.plain_client()] {
        for newcomer in [app.service.client().from_address([127, 0, 0, 2]), app.service.client()] {
            // A crowd of its own each time: after a while it is let go.
            in_time(AT_ONCE, || {
                let crowd = crowd(&silent, 420);
                // A client from the crowd's own address may be taken for one of the crowd while it is still arriving.
                let waited = time_of(|| wait_for("an answer", || is_served(&newcomer, &create)));
                drop(crowd);
                waited
            });
        }
    }
    assert_eq!(earlier.exchange(&create).status, 201, "a client that was served before is still served");
}

#[test]
fn idle_connections_from_many_addresses_delay_nobody() {
    let app = TestApp::start_with(|builder| builder.open_files(340));
    let create = create_request(app.key(), &[], patient().to_string().as_bytes());
    let mut idle = Vec::new();
    let mut slow = Vec::new();
    for host in 1..=210 {
        let client = app.service.client().from_address([127, 0, 1, host]);
        let mut connection = client.connect();
        assert_eq!(connection.exchange(&create).status, 201);
        idle.push(connection);
        idle.truncate(100);
        let waited = time_of(|| assert_eq!(app.service.create(app.key(), &patient()).status, 201));
        // Where places are missing, everybody waits for one.
        slow.extend(Some(waited).filter(|waited| *waited > AT_ONCE));
        assert!(slow.len() < 10, "{slow:?}");
    }
}

/// Connects clients that send almost all of a large body, with a made-up key each, and keep back its end.
fn hold_back_bodies(app: &TestApp, count: usize) -> Vec<Connection> {
    let body = vec![b' '; 60 * 1024];
    let hold_back = |number| {
        let mut client = from_many(&app.service.client(), number).try_connect().ok()?;
        let length = [("Content-Length", "65536")];
        let mut sent = create_request(&app.clinic.unknown_key(), &length, b"");
        sent.extend(&body);
        client.write_within(&sent, AT_ONCE).ok().map(|_| client)
    };
    (0..count).filter_map(hold_back).collect()
}

#[test]
fn bodies_from_strangers_share_one_amount_of_memory() {
    let _alone = alone();
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let newcomer = app.service.client().from_address([127, 0, 0, 99]);
    let small = create_request(app.key(), &[], patient().to_string().as_bytes());
    let mut large = patient();
    large["padding"] = "x".repeat(60 * 1024).into();
    let large = create_request(app.key(), &[], large.to_string().as_bytes());
    // More and more of them, until nothing is left: a body that takes too long is given up meanwhile.
    let mut strangers = Vec::new();
    let mut refused = newcomer.send(&large);
    wait_for("an end of the shared memory", || {
        strangers.extend(hold_back_bodies(&app, 200));
        refused = newcomer.send(&large);
        refused.status == 503
    });
    assert_eq!((refused.header("retry-after"), refused.header("connection")), (Some("1"), Some("close")));
    let length = [("Content-Type", "application/x-www-form-urlencoded")];
    let form = request("POST", "/sign-in", &length, format!("email=a&password={}", "x".repeat(12 * 1024)).as_bytes());
    assert_eq!(newcomer.send(&form).status, 503, "forms share it, too");
    assert_eq!(newcomer.send(&small).status, 201, "an ordinary patient needs nothing of what is shared");
    assert_eq!(hold_back_bodies(&app, 1).remove(0).read().status, 401, "a key that is not known is refused as such");
    drop(strangers);
    wait_for("room for a large body", || newcomer.send(&large).status == 201);
}

/// Memory that the whole service may hold while clients leave its answers unread, however many they are.
const MEMORY_FOR_UNREAD_ANSWERS: usize = 256 * 1024 * 1024;
/// Memory that it may hold while strangers send bodies.
const MEMORY_FOR_BODIES: usize = 256 * 1024 * 1024;
/// Memory that it may hold while all places are taken by clients who do nothing that is forbidden.
const MEMORY_FOR_IDLE_CLIENTS: usize = 640 * 1024 * 1024;

#[expect(clippy::print_stdout, reason = "figures for docs/reliability.md")]
/// The most memory that the service holds while a crowd is at it, and how long a newcomer waits meanwhile.
fn bound(app: &TestApp, newcomer: &Client, what: &str, bound: usize, mut press: impl FnMut()) {
    let create = create_request(app.key(), &[], patient().to_string().as_bytes());
    let (mut most, mut longest) = (0, Duration::ZERO);
    for _ in 0..5 {
        press();
        most = most.max(app.service.memory());
        let started = Instant::now();
        assert_eq!(newcomer.send(&create).status, 201);
        longest = longest.max(started.elapsed());
        most = most.max(app.service.memory());
    }
    println!("{what}: {} MiB at most; a newcomer waits {} ms at most", most / 1024 / 1024, longest.as_millis());
    assert!(most < bound, "{what}: {most} bytes");
    assert!(longest < AT_ONCE, "{what}: a newcomer waits for {longest:?}");
}

/// Lets this process, and the service that it starts, open as many files as it may.
pub(crate) fn open_all_files() {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let all = rustix::process::Rlimit { current: files, maximum: files };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, all).unwrap();
}

#[test]
#[ignore = "opens 9,000 connections: a minute or two, 20,000 open files, and all of the machine"]
fn bodies_of_9000_strangers_stay_within_their_bound() {
    open_all_files();
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let newcomer = app.service.client().from_address([127, 0, 0, 99]);
    let mut strangers = Vec::new();
    bound(&app, &newcomer, "9,000 over TLS that hold back the end of a body", MEMORY_FOR_BODIES, || {
        strangers.extend(hold_back_bodies(&app, 9_000 / 5));
    });
}

#[test]
#[ignore = "opens 16,384 connections: a minute or two, 20,000 open files, and all of the machine"]
fn the_whole_service_has_a_bound_against_any_flood() {
    open_all_files();
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let style = request("GET", "/assets/style.css", &[], b"").repeat(200);
    let newcomer = app.service.client().from_address([127, 0, 0, 99]);
    for (name, client) in [("plain", app.service.plain_client()), ("TLS", app.service.client())] {
        let connect = |number| {
            let mut client = from_many(&client, number).try_connect()?;
            client.stop_waiting().map(|()| client)
        };
        for count in [300, 4_000, 9_000] {
            let mut clients: Vec<_> = (0..count).filter_map(|number| connect(number).ok()).collect();
            let what = format!("{count} over {name} that read no answer");
            bound(&app, &newcomer, &what, MEMORY_FOR_UNREAD_ANSWERS, || {
                clients.iter_mut().for_each(|client| pour(client, &style, 1024 * 1024));
            });
        }
        let mut idle = Vec::new();
        bound(&app, &newcomer, &format!("9,000 over {name} that had an answer"), MEMORY_FOR_IDLE_CLIENTS, || {
            idle.extend((0..9_000 / 5).filter_map(|number| {
                let mut client = from_many(&client, number).try_connect().ok()?;
                client.try_write(&request("GET", "/assets/style.css", &[], b"")).ok()?;
                client.try_read(true).ok().map(|_| client)
            }));
        });
        drop(idle);
        let hello = if name == "TLS" { &b"\x16\x03\x01\x02\x00\x01"[..] } else { b"GET / HTTP/1.1\r\n" };
        let mut strangers = Vec::new();
        bound(&app, &newcomer, &format!("16,384 strangers over {name}"), MEMORY_FOR_IDLE_CLIENTS, || {
            strangers.extend((0..16_384 / 5).filter_map(|number| {
                let mut stranger = from_many(&client, number).try_open_socket().ok()?;
                stranger.write_all(hello).ok().map(|()| stranger)
            }));
        });
    }
}

/// The same client from one of a few addresses.
fn from_many(client: &Client, number: usize) -> Client {
    client.clone().from_address([127, 0, 2, u8::try_from(number % 8).unwrap()])
}
