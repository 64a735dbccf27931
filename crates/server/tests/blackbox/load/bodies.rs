//! The memory that bodies of strangers take: all of the process's, over TLS, on connections that had an answer before.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use intake_test_support::{Connection, create_request, request};

use crate::fixtures::{TestApp, alone};
use crate::load::floods::open_all_files;

const THREADS: usize = 8;
/// Memory that all bodies share.
const SHARED: usize = 16 * 1024 * 1024;
/// Memory of a connection that had an answer, over TLS.
const IDLE: usize = 22 * 1024;
/// Memory of a connection with a request whose body has room for its first bytes only.
const WITH_BODY: usize = 56 * 1024;
/// Memory that the process may take in all while 4,000 strangers send bodies.
const WITH_4000_BODIES: usize = 200 * 1024 * 1024;
/// Time for which a stranger tries to send.
const AT_MOST: Duration = Duration::from_secs(1);
/// Longer than a refused client may still send.
const WHILE_IT_LASTS: Duration = Duration::from_secs(2);

fn connect(app: &TestApp, page: &str) -> Connection {
    let mut connection = app.service.client().connect();
    assert_eq!(connection.exchange(&request("GET", page, &[], b"")).status, 200);
    connection
}

/// A request without the end of its body, which is one of the largest.
#[derive(Clone, Copy)]
enum Unfinished {
    Patient,
    Form,
}

impl Unfinished {
    fn of(self, app: &TestApp) -> Vec<u8> {
        let (head, sent) = match self {
            Self::Patient => (create_request(&app.clinic.unknown_key(), &[("Content-Length", "65536")], b""), 65_000),
            Self::Form => {
                let headers = [("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", "16384")];
                (request("POST", "/sign-in", &headers, b""), 16_000)
            }
        };
        [head, vec![b' '; sent]].concat()
    }
}

/// The most memory that the service takes while some work goes on.
fn most_memory(app: &TestApp, work: impl FnOnce()) -> usize {
    let (mut most, is_over) = (0, AtomicBool::new(false));
    scope(|threads| {
        threads.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(app.service.memory());
                sleep(Duration::from_millis(10));
            }
        });
        work();
        is_over.store(true, Ordering::Relaxed);
    });
    most
}

/// The memory of a service: with no connection, with many that had an answer, and at most while each of them sends
/// a request without its end.
fn memory_of(strangers: usize, unfinished: Unfinished) -> [usize; 3] {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    drop(connect(&app, "/sign-in"));
    let alone = app.service.memory();
    let mut connections: Vec<Vec<Connection>> = Vec::new();
    scope(|threads| {
        let connect_part = || (0..strangers / THREADS).map(|_| connect(&app, "/sign-in")).collect();
        let parts: Vec<_> = (0..THREADS).map(|_| threads.spawn(connect_part)).collect();
        connections = parts.into_iter().map(|part| part.join().unwrap()).collect();
    });
    let idle = app.service.memory();
    let most = most_memory(&app, || {
        scope(|threads| {
            for part in &mut connections {
                // Who is refused meanwhile may be disconnected.
                let send = |stranger: &mut Connection| drop(stranger.write_within(&unfinished.of(&app), AT_MOST));
                threads.spawn(move || part.iter_mut().for_each(send));
            }
        });
        sleep(WHILE_IT_LASTS);
    });
    [alone, idle, most]
}

#[test]
fn strangers_who_keep_back_the_end_of_a_body_share_what_bodies_take() {
    const STRANGERS: usize = 1_000;
    let _alone = alone();
    for (what, unfinished) in [("bodies", Unfinished::Patient), ("forms", Unfinished::Form)] {
        let [alone, idle, most] = memory_of(STRANGERS, unfinished);
        assert!(idle - alone < STRANGERS * IDLE, "{STRANGERS} idle connections took {} bytes", idle - alone);
        assert!(most - alone < SHARED + STRANGERS * WITH_BODY, "{STRANGERS} {what} took {} bytes", most - alone);
    }
}

#[test]
fn an_idle_connection_keeps_nothing_of_the_longest_page() {
    const READERS: usize = 300;
    let _alone = alone();
    let app = TestApp::start();
    drop((0..8).map(|_| connect(&app, "/docs")).collect::<Vec<_>>());
    let before = app.service.memory();
    let readers: Vec<_> = (0..READERS).map(|_| connect(&app, "/docs")).collect();
    let each = (app.service.memory() - before) / READERS;
    assert!(each < 2 * IDLE, "each of {} idle connections takes {each} bytes", readers.len());
}

#[test]
#[ignore = "opens 4,000 connections, and its bound is for a release build"]
fn bodies_of_4000_strangers_stay_within_their_bound() {
    open_all_files();
    let [alone, idle, most] = memory_of(4_000, Unfinished::Patient).map(|bytes| bytes / 1024 / 1024);
    println!("{alone} MiB alone, {idle} with 4,000 idle connections, {most} while each sends a body");
    assert!(most < WITH_4000_BODIES / 1024 / 1024);
}
