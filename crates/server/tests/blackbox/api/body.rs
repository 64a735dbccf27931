//! The body: JSON in UTF-8, at most 64 KiB, said to be what it is.

use intake_test_support::{create_request, patient};

use crate::assert_problem;
use crate::fixtures::TestApp;

const JSON_IN_UTF_8: &str = "The body must be sent as application/json in UTF-8, without a content encoding";

#[test]
fn malformed_json_is_located_and_never_repeated() {
    let app = TestApp::start();
    // Every form that JSON can be broken in is tried where it is decoded.
    let cases: [(&[u8], &str); 5] = [
        (b"<patient/>", "line 1 column 1"),
        (b"{\"firstName\":\"Canary\",", "line 1 column 22"),
        (b"{\n  \"firstName\": Canary\n}", "line 2 column 16"),
        (b"{} {}", "line 1 column 4"),
        (b"{\"firstName\":\"\\ud800Canary\"}", "line 1 column 15"),
    ];
    for (body, place) in cases {
        let response = app.send_body(body);
        assert_problem(&response, 400, "Bad Request", &format!("The body is not valid JSON: error at {place}"));
        assert!(!response.text().contains("Canary"));
    }
    assert_eq!(app.patients(), 0);
}

#[test]
fn the_usual_causes_of_malformed_json_are_named() {
    let app = TestApp::start();
    let cases: [(&[u8], &str); 5] = [
        (b"", "is empty: error at line 1 column 1"),
        (b"\xEF\xBB\xBF{}", "begins with a byte order mark: error at line 1 column 1"),
        (b"{\"firstName\":\"\xFFCanary\"}", "is not in UTF-8: error at line 1 column 15"),
        (
            b"{\"addressLine1\":\"Canary\n1 Street\"}",
            "has a line break or another control character inside a text: error at line 1 column 23",
        ),
        (
            b"{'firstName':'Canary'}",
            "has single or typographic quotes in place of double quotes: error at line 1 column 2",
        ),
    ];
    for (body, cause) in cases {
        let response = app.send_body(body);
        assert_problem(&response, 400, "Bad Request", &format!("The body is not valid JSON, because it {cause}"));
    }
}

#[test]
fn a_member_sent_twice_is_named() {
    let app = TestApp::start();
    let body = patient().to_string().replacen('{', r#"{"firstName":"Eve","#, 1);
    assert_problem(&app.send_body(body), 400, "Bad Request", "The body contains the property \"firstName\" twice");
    let body = patient().to_string().replacen('{', r#"{"other":1,"other":1,"#, 1);
    assert_problem(&app.send_body(body), 400, "Bad Request", "The body contains the property \"other\" twice");
    assert_eq!(app.patients(), 0);
}

#[test]
fn other_content_types_are_refused() {
    let app = TestApp::start();
    let body = patient().to_string();
    for value in ["text/plain", "application/json; charset=utf-16", "application/xml", "application/problem+json", ""] {
        let response = app.service.create_with(app.key(), &[("Content-Type", value)], body.as_bytes());
        assert_problem(&response, 415, "Unsupported Media Type", JSON_IN_UTF_8);
        assert_eq!(response.header("accept"), Some("application/json"), "{value}");
    }
    let two = [("Content-Type", "application/json"), ("Content-Type", "text/plain")];
    let encoded = [("Content-Encoding", "gzip")];
    for headers in [&two[..], &encoded[..]] {
        let response = app.service.create_with(app.key(), headers, body.as_bytes());
        assert_problem(&response, 415, "Unsupported Media Type", JSON_IN_UTF_8);
    }
    assert_eq!(app.patients(), 0);
}

#[test]
fn json_may_be_announced_in_any_case_with_parameters() {
    let app = TestApp::start();
    for value in
        ["application/json", "APPLICATION/Json", "application/json;charset=UTF-8", "application/json; profile=x"]
    {
        let response = app.service.create_with(app.key(), &[("Content-Type", value)], patient().to_string().as_bytes());
        assert_eq!(response.status, 201, "{value}");
    }
}

#[test]
fn a_body_of_64_kib_is_taken_and_a_larger_one_refused() {
    let app = TestApp::start();
    let padded = |size: usize| {
        let mut body = patient().to_string();
        body.push_str(&" ".repeat(size - body.len()));
        body
    };
    assert_eq!(app.send_body(padded(64 * 1024)).status, 201);
    let refused = app.send_body(padded(64 * 1024 + 1));
    assert_problem(&refused, 413, "Content Too Large", "The body must not be larger than 64 KiB");
    assert_eq!(refused.reason, "Content Too Large");
}

#[test]
fn a_large_body_is_refused_before_it_has_arrived() {
    let app = TestApp::start();
    let mut announced = create_request(app.key(), &[("Content-Length", "1000000000")], b"");
    announced.extend_from_slice(b"{\"firstName\":");
    let mut connection = app.service.client().connect();
    assert_eq!(connection.exchange(&announced).status, 413);

    let mut connection = app.service.client().connect();
    connection.write(&create_request(app.key(), &[("Transfer-Encoding", "chunked")], b""));
    let chunk = [b"4000\r\n", [b' '; 0x4000].as_slice(), b"\r\n"].concat();
    for _ in 0..5 {
        connection.write(&chunk);
    }
    assert_eq!(connection.read().status, 413);
}

#[test]
fn a_body_in_chunks_is_taken() {
    let app = TestApp::start();
    let body = patient().to_string();
    let (first, second) = body.split_at(20);
    let mut connection = app.service.client().connect();
    connection.write(&create_request(app.key(), &[("Transfer-Encoding", "chunked")], b""));
    connection.write(format!("{:x}\r\n{first}\r\n", first.len()).as_bytes());
    connection.write(format!("{:x}\r\n{second}\r\n0\r\n\r\n", second.len()).as_bytes());
    assert_eq!(connection.read().status, 201);
}

#[test]
fn a_connection_serves_on_after_a_refusal() {
    let app = TestApp::start();
    let mut connection = app.service.client().connect();
    for (body, status) in [("{", 400), ("[]", 422), ("{}", 422), (patient().to_string().as_str(), 201)] {
        assert_eq!(connection.exchange(&create_request(app.key(), &[], body.as_bytes())).status, status);
    }
}

#[test]
fn requests_sent_ahead_are_answered_in_order() {
    let app = TestApp::start();
    let good = patient().to_string();
    let bodies = [good.as_bytes(), b"{", good.as_bytes(), b"[]"];
    let ahead: Vec<u8> = bodies.iter().flat_map(|body| create_request(app.key(), &[], body)).collect();
    let mut connection = app.service.client().connect();
    connection.write(&ahead);
    let answers = [connection.read(), connection.read(), connection.read(), connection.read()];
    assert_eq!(answers.map(|answer| answer.status), [201, 400, 201, 422]);
}

#[test]
fn a_client_that_goes_away_in_the_middle_creates_nothing() {
    let app = TestApp::start();
    let mut connection = app.service.client().connect();
    let whole = create_request(app.key(), &[], patient().to_string().as_bytes());
    connection.write(&whole[..whole.len() - 5]);
    drop(connection);
    assert_eq!(app.create(&patient()).status, 201, "the service goes on");
    assert_eq!(app.patients(), 1);
}
