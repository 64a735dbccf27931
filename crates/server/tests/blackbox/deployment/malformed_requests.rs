//! Malformed requests through HAProxy and nginx with the configurations in docs/operations. Each is answered as the
//! service would answer it, none forges a line of the log, and the secrets in links are in no log.

use std::collections::HashSet;
use std::time::Duration;

use intake_test_support::{Client, Response, request, wait_for};
use serde_json::Value;

use crate::deployment::proxies::{Kind, Site, assert_own_answer};

/// Far longer than either proxy takes to answer what it has read to its end.
const ANSWER: Duration = Duration::from_secs(30);
const SECRET: &str = "5ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7";
const FORGED: &str = "198.51.100.66";

/// Bytes that are sent, and the statuses that HAProxy, or the service behind it, and nginx answer with. 0: another
/// protocol is spoken from then on.
struct Case {
    name: &'static str,
    bytes: Vec<u8>,
    haproxy: u16,
    nginx: u16,
}

fn case(name: &'static str, bytes: impl AsRef<[u8]>, haproxy: u16, nginx: u16) -> Case {
    Case { name, bytes: bytes.as_ref().to_vec(), haproxy, nginx }
}

fn cases() -> Vec<Case> {
    let long = |length: usize| format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(length));
    let get = |rest: &str| format!("GET /api/v1/patients HTTP/1.1\r\nHost: localhost\r\n{rest}\r\n");
    let line = |line: &str| format!("{line}\r\nHost: localhost\r\n\r\n");
    let headers: String = (0..5).map(|n| format!("A{n}: {}\r\n", "x".repeat(8_000))).collect();
    vec![
        case("a long address", long(9_000), 404, 414),
        case("a longer address", long(20_000), 400, 414),
        case("large headers", get(&headers), 400, 400),
        case("a header without a colon", get("no header\r\n"), 400, 400),
        case("no host", "GET / HTTP/1.1\r\n\r\n", 400, 400),
        case("two hosts", get("Host: other\r\n"), 400, 400),
        case("half an escape", line("GET /%zz HTTP/1.1"), 404, 400),
        case("an escape of NUL", line("GET /%00 HTTP/1.1"), 404, 400),
        case("dots above the root", line("GET /../.. HTTP/1.1"), 404, 400),
        case("OPTIONS *", line("OPTIONS * HTTP/1.1"), 404, 400),
        case("CONNECT", "CONNECT localhost:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n", 400, 400),
        case("TRACE", line("TRACE /sign-in HTTP/1.1"), 405, 405),
        case("a method in lower case", line("get / HTTP/1.1"), 405, 400),
        case("a space before the method", line(" GET / HTTP/1.1"), 400, 400),
        case("HTTP/2 without asking", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0, 400),
        case("a version of the future", line("GET / HTTP/3.0"), 303, 505),
        case("no version", line("GET / HTTP/x"), 400, 400),
        case("TLS within TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, 400),
        case("an unknown coding", get("Transfer-Encoding: gzip, chunked\r\n"), 422, 501),
        case("a length that is none", get("Content-Length: -1\r\n"), 400, 400),
        case("a length beyond any limit", get("Content-Length: 99999999999999\r\n"), 405, 413),
        case("the page of an own answer", line("GET /-/problem HTTP/1.1"), 404, 404),
    ]
}

/// Paths and headers that would add to a line of a log that does not escape them.
fn forgeries() -> Vec<Vec<u8>> {
    let forged = format!("\",\"client\":\"{FORGED}\",\"z\":\"b");
    let encoded = forged.replace('"', "%22");
    let mut requests: Vec<Vec<u8>> = [&forged, &encoded, "\\\"", "\\", "%0A{}", "%00", "\u{e9}\"", "%FF", "%E2%80%A8"]
        .map(|text| format!("GET /api/x{text} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes())
        .to_vec();
    for value in [forged.as_bytes(), b"\\", b"\xff\xfe", b"a\tb", "\u{2028}".as_bytes()] {
        let start = b"GET /api/v1/patients HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: ";
        requests.push([start, value, b"\r\nUser-Agent: ", value, b"\r\nReferer: ", value, b"\r\n\r\n"].concat());
    }
    requests.push(format!("GE\"T /api/{forged} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes());
    requests
}

fn title(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        501 => "Not Implemented",
        505 => "HTTP Version Not Supported",
        _ => panic!("{status} is no answer that is expected"),
    }
}

/// None: the connection was closed without an answer.
fn answer(client: &Client, bytes: &[u8]) -> Option<Response> {
    let mut connection = client.connect();
    // What is refused early may not be read to its end.
    let _ = connection.try_write(bytes);
    connection.read_within(ANSWER).ok()
}

fn malformed_requests_are_answered_as_the_service_does(kind: Kind) {
    let Some(site) = Site::open(kind) else { return };
    for Case { name, bytes, haproxy, nginx } in cases() {
        let expected = if kind == Kind::Nginx { nginx } else { haproxy };
        let answer = answer(&site.client(), &bytes);
        if expected == 0 {
            assert!(answer.is_none(), "{name}");
            continue;
        }
        let answer = answer.unwrap_or_else(|| panic!("{name} is not answered"));
        assert_eq!(answer.status, expected, "{name}: {}", answer.text());
        // HAProxy's bare answers to what it cannot parse cannot be replaced.
        if kind == Kind::Nginx || [404, 405].contains(&expected) {
            assert!(!answer.body.is_empty(), "{name}: {:?}", answer.headers);
            assert_own_answer(&answer, expected, title(expected));
        }
    }
    // In clear where TLS is expected.
    let in_clear = Client::plain(site.address());
    if kind == Kind::Nginx {
        assert_own_answer(&answer(&in_clear, &request("GET", "/", &[], b"")).unwrap(), 400, "Bad Request");
    }
    assert_eq!(site.client().send(&request("GET", "/sign-in", &[], b"")).status, 200);
    assert_lines_are_whole(&site);
}

fn nothing_forges_a_line_of_the_log(kind: Kind) {
    let Some(site) = Site::open(kind) else { return };
    let forgeries = forgeries();
    for bytes in &forgeries {
        let answer = answer(&site.client(), bytes).map(|answer| answer.status);
        assert!(matches!(answer, Some(400..500)), "{answer:?} {}", String::from_utf8_lossy(bytes));
    }
    let marked = request("GET", "/api/last", &[("X-Request-Id", "the-last")], b"");
    assert_eq!(site.client().send(&marked).status, 404);
    wait_for("the last line", || site.log().contains("the-last"));
    let lines = assert_lines_are_whole(&site);
    assert!(lines >= forgeries.len(), "{lines}");
}

/// Every line of a request is JSON, with the names of all others and the client's address. Returns how many there are.
fn assert_lines_are_whole(site: &Site) -> usize {
    let log = site.log_bytes();
    let log = str::from_utf8(&log).unwrap();
    let (requests, others): (Vec<_>, Vec<_>) = log.lines().partition(|line| line.starts_with('{'));
    let mut shapes = HashSet::new();
    for line in &requests {
        let entry: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(entry["client"], "127.0.0.1", "{line}");
        // A name that is there twice is hidden in the object, and not in its length.
        assert_eq!(line.matches("\"client\":").count(), 1, "{line}");
        shapes.insert(entry.as_object().unwrap().keys().cloned().collect::<Vec<_>>());
    }
    assert_eq!(shapes.len(), 1, "{shapes:?}");
    // Of HAProxy: its servers, and connections that spoke no TLS.
    for line in others {
        assert!(site.kind() == Kind::Haproxy && !line.contains(FORGED), "{line}");
    }
    requests.len()
}

fn secrets_of_links_are_in_no_log(kind: Kind) {
    let Some(mut site) = Site::open(kind) else { return };
    let ask = |site: &Site| {
        for path in ["/invitations/", "/reset-password/", "/confirm-email/"] {
            for (method, rest) in
                [("GET", ""), ("POST", ""), ("GET", "/provider"), ("GET", "%zz"), ("TRACE", ""), ("GET", "?a=b")]
            {
                let _ = answer(&site.client(), &request(method, &format!("{path}{SECRET}{rest}"), &[], b""));
            }
            let large = request("POST", &format!("{path}{SECRET}"), &[("Content-Length", "99999999999")], b"");
            let _ = answer(&site.client(), &large);
            let long = request("GET", &format!("{path}{SECRET}{}", "x".repeat(20_000)), &[], b"");
            let _ = answer(&site.client(), &long);
        }
    };
    ask(&site);
    site.stop_instances();
    ask(&site);
    assert_eq!(site.client().send(&request("GET", "/api/last", &[], b"")).status, 503);
    wait_for("the last line", || site.log().replace("\\/", "/").contains("\"/api/last\""));
    for (name, text) in site.logs() {
        assert!(!text.contains(&SECRET[..16]), "{name}: {text}");
    }
    if kind == Kind::Nginx {
        let errors = site.logs().into_iter().find(|(name, _)| name == "error.log").unwrap().1;
        assert!(errors.contains("/api/last"), "what fails of the API is logged: {errors}");
    }
}

#[test]
fn haproxy_answers_malformed_requests_as_the_service_does() {
    malformed_requests_are_answered_as_the_service_does(Kind::Haproxy);
}

#[test]
fn nginx_answers_malformed_requests_as_the_service_does() {
    malformed_requests_are_answered_as_the_service_does(Kind::Nginx);
}

#[test]
fn nothing_forges_a_line_of_haproxys_log() {
    nothing_forges_a_line_of_the_log(Kind::Haproxy);
}

#[test]
fn nothing_forges_a_line_of_nginxs_log() {
    nothing_forges_a_line_of_the_log(Kind::Nginx);
}

#[test]
fn secrets_of_links_are_in_no_log_of_haproxy() {
    secrets_of_links_are_in_no_log(Kind::Haproxy);
}

#[test]
fn secrets_of_links_are_in_no_log_of_nginx() {
    secrets_of_links_are_in_no_log(Kind::Nginx);
}
