//! Every answer that is not 2xx has one shape, and every answer the same headers.

use intake_test_support::{Response, create_request, patient, request, wait_for};

use crate::assert_problem;
use crate::fixtures::{TestApp, service};

fn assert_common_headers(response: &Response) {
    assert_eq!(response.header("cache-control"), Some("no-store"));
    assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(response.header("strict-transport-security"), Some("max-age=31536000"));
    let id = response.header("x-request-id").unwrap();
    assert!((1..=128).contains(&id.len()), "{id}");
}

#[test]
fn https_can_be_required_of_all_hosts_below_this_one() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_HSTS", "subdomains"));
    let requests = [
        request("GET", "/sign-in", &[], b""),
        request("POST", "/api/v1/patients", &[], b""),
        b"nonsense\r\n\r\n".to_vec(),
    ];
    for (request, status) in requests.into_iter().zip([200, 401, 400]) {
        let answer = app.service.client().send(&request);
        let said = answer.header("strict-transport-security");
        assert_eq!((answer.status, said), (status, Some("max-age=31536000; includeSubDomains")));
    }
}

#[test]
fn every_answer_carries_the_same_headers() {
    let app = TestApp::start();
    let client = app.service.client();
    let good = patient().to_string();
    let cases = [
        (create_request(app.key(), &[], good.as_bytes()), 201),
        (request("OPTIONS", "/api/v1/patients", &[], b""), 204),
        (create_request(app.key(), &[], b"{"), 400),
        (request("POST", "/api/v1/patients", &[], b""), 401),
        (request("GET", "/api/v1/nothing", &[], b""), 404),
        (request("GET", "/api/v1/patients", &[], b""), 405),
        (create_request(app.key(), &[("Content-Type", "text/plain")], b"{}"), 415),
        (create_request(app.key(), &[], b"{}"), 422),
    ];
    for (bytes, status) in cases {
        let response = client.send(&bytes);
        assert_eq!(response.status, status);
        assert_common_headers(&response);
    }
}

#[test]
fn every_error_links_to_its_explanation() {
    let app = TestApp::start();
    let client = app.service.client();
    let page = client.send(&request("GET", "/docs", &[], b"")).text();
    let (_, old) = app.clinic.key_until(Some(time::OffsetDateTime::UNIX_EPOCH));
    let simulated = |status: u16| {
        let key = format!("simulate-{status}-1");
        create_request(app.key(), &[("Idempotency-Key", key.as_str())], patient().to_string().as_bytes())
    };
    let large = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(20_000)).into_bytes();
    let cases = [
        (create_request(app.key(), &[], b"{"), 400, "400-bad-request"),
        (b"nonsense\r\n\r\n".to_vec(), 400, "400-bad-request"),
        (request("POST", "/api/v1/patients", &[], b""), 401, "401-unauthorized"),
        (create_request(&old, &[], b"{}"), 401, "401-unauthorized"),
        (request("GET", "/api/v1/nothing", &[], b""), 404, "every-status-404-405"),
        (request("GET", "/api/v1/patients", &[], b""), 405, "every-status-404-405"),
        (simulated(410), 410, "every-status-410"),
        (create_request(app.key(), &[], &[b' '; 70_000]), 413, "every-status-413"),
        (create_request(app.key(), &[("Content-Type", "text/plain")], b"{}"), 415, "every-status-415"),
        (create_request(app.key(), &[], b"{}"), 422, "422-validation-error"),
        (simulated(429), 429, "every-status-429"),
        (large, 431, "every-status-431"),
        (simulated(503), 503, "every-status-503"),
    ];
    for (bytes, status, anchor) in cases {
        let response = client.send(&bytes);
        let expected = format!("<{}#{anchor}>; rel=\"help\"", app.url("/docs"));
        assert_eq!((response.status, response.header("link")), (status, Some(expected.as_str())));
        assert!(page.contains(&format!("id=\"{anchor}\"")), "{anchor}");
    }
    let plain = app.service.plain_client().send(&create_request(app.key(), &[], b"{}"));
    assert_eq!(plain.status, 426);
    assert!(plain.header("link").unwrap().contains("#every-status-426>") && page.contains("id=\"every-status-426\""));
    assert_eq!(app.create(&patient()).header("link"), None);
    for anchor in ["every-status-408", "every-status-500"] {
        assert!(page.contains(&format!("id=\"{anchor}\"")), "{anchor}");
    }
}

#[test]
fn a_plain_request_id_comes_back_and_any_other_is_replaced() {
    let app = TestApp::start();
    let send = |id: &str| app.service.create_with(app.key(), &[("X-Request-Id", id)], b"{}");
    let longest = "x".repeat(128);
    for id in ["a", "0190b2c8-7e0f.A_z", longest.as_str()] {
        assert_eq!(send(id).header("x-request-id"), Some(id));
    }
    let mut made = vec![];
    for id in ["", "a b", "a/b", "é", "x\"", &"x".repeat(129)] {
        let response = send(id);
        let given = response.header("x-request-id").unwrap().to_owned();
        assert_ne!(given, id);
        assert!(!made.contains(&given), "each is new");
        made.push(given);
    }
}

#[test]
fn nothing_is_found_at_any_other_path() {
    let app = TestApp::start();
    let client = app.service.client();
    let paths = [
        "/nothing",
        "/api/v1/patients/",
        "/api/v1",
        "/api/v1/patients/1",
        "/api/v2/patients",
        "//api/v1/patients",
        "/API/v1/patients",
        "/api/v1/patients%2F",
        "/livez",
        "/metrics",
        "/../etc/passwd",
    ];
    for path in paths {
        for method in ["GET", "POST", "OPTIONS", "DELETE"] {
            let response = client.send(&request(method, path, &[], b""));
            assert_problem(&response, 404, "Not Found", "No such path");
        }
    }
}

#[test]
fn a_query_changes_nothing() {
    let app = TestApp::start();
    let bytes = create_request(app.key(), &[], patient().to_string().as_bytes());
    let text = String::from_utf8(bytes).unwrap().replace("/api/v1/patients", "/api/v1/patients?dry=1");
    assert_eq!(app.service.client().send(text.as_bytes()).status, 201);
}

#[test]
fn other_methods_get_405_with_the_allowed_ones() {
    let app = TestApp::start();
    let client = app.service.client();
    for method in ["GET", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"] {
        let response = client.send(&request(method, "/api/v1/patients", &[], b""));
        assert_problem(&response, 405, "Method Not Allowed", "This path accepts only POST requests");
        assert_eq!(response.header("allow"), Some("POST, OPTIONS"));
    }
}

#[test]
fn head_is_refused_without_a_body() {
    let app = TestApp::start();
    let mut connection = app.service.client().connect();
    connection.write(&request("HEAD", "/api/v1/patients", &[], b""));
    let response = connection.read_head();
    assert_eq!((response.status, response.header("allow")), (405, Some("POST, OPTIONS")));
    let next = connection.exchange(&request("OPTIONS", "/api/v1/patients", &[], b""));
    assert_eq!(next.status, 204, "no body was sent in between");
}

#[test]
fn options_lists_the_methods_and_no_more() {
    let app = TestApp::start();
    let headers = [("Origin", "https://elsewhere.example"), ("Access-Control-Request-Method", "POST")];
    let response = app.service.client().send(&request("OPTIONS", "/api/v1/patients", &headers, b""));
    assert_eq!((response.status, response.body.len()), (204, 0));
    assert_eq!(response.header("allow"), Some("POST, OPTIONS"));
    assert!(response.headers.iter().all(|(name, _)| !name.starts_with("access-control")));
}

#[test]
fn clients_that_accept_problem_json_get_it() {
    let app = TestApp::start();
    for (accept, expected) in [
        ("application/problem+json", "application/problem+json"),
        ("text/html, application/Problem+JSON;q=0.5", "application/problem+json"),
        ("application/json", "application/json"),
        ("*/*", "application/json"),
        ("application/*", "application/json"),
    ] {
        let response = app.service.create_with(app.key(), &[("Accept", accept)], b"{}");
        assert_eq!((response.status, response.header("content-type")), (422, Some(expected)), "{accept}");
        let missing = app.service.client().send(&request("GET", "/api/v1/nothing", &[("Accept", accept)], b""));
        assert_eq!((missing.status, missing.header("content-type")), (404, Some(expected)), "{accept}");
    }
    let created =
        app.service.create_with(app.key(), &[("Accept", "application/problem+json")], patient().to_string().as_bytes());
    assert_eq!((created.status, created.header("content-type")), (201, Some("application/json")));
}

#[test]
fn a_database_that_cannot_be_reached_is_503_and_a_try_later_succeeds() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_DEADLINE", "500ms"));
    let name = app.database.name().to_owned();
    let admin = |allow: bool| {
        let sql = format!(
            "ALTER DATABASE {name} ALLOW_CONNECTIONS {allow};
             SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}' AND NOT {allow}"
        );
        app.database.administer(&sql);
    };
    wait_for("a create", || app.create(&patient()).status == 201);
    admin(false);
    for body in [patient().to_string(), "{}".to_owned()] {
        let response = app.send_body(&body);
        let detail = "The service cannot reach its database; try again shortly";
        assert_problem(&response, 503, "Service Unavailable", detail);
        assert_eq!(response.header("retry-after"), Some("1"));
    }
    assert_eq!(app.service.probe("/readyz").status, 503);
    assert_eq!(app.service.probe("/livez").status, 200);
    admin(true);
    wait_for("a create", || app.create(&patient()).status == 201);
    wait_for("a refusal", || app.send_body("{}").status == 422);
    app.service.wait_until_ready();
}

#[test]
fn a_failover_to_a_read_only_server_loses_nothing() {
    let app = TestApp::start();
    let name = app.database.name();
    let set = |value| {
        format!(
            "ALTER DATABASE {name} SET default_transaction_read_only = {value};
             SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        )
    };
    assert_eq!(app.create(&patient()).status, 201);
    app.database.administer(&set("on"));
    std::thread::scope(|scope| {
        let created = scope.spawn(|| app.create(&patient()));
        std::thread::sleep(std::time::Duration::from_millis(500));
        assert!(!created.is_finished(), "the request waits");
        app.database.administer(&set("off"));
        assert_eq!(created.join().unwrap().status, 201);
    });
    assert_eq!(app.patients(), 2);
}

#[test]
fn a_full_disk_loses_nothing() {
    use diesel::connection::SimpleConnection;

    let app = TestApp::on_one_server(|builder| builder.setting("INTAKE_DEADLINE", "2s"));
    // What PostgreSQL says when it cannot make a table longer.
    let full = "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
        END $$;
        CREATE TRIGGER full_disk BEFORE INSERT ON patients EXECUTE FUNCTION full_disk()";
    let mut owner = app.database.connect();
    owner.batch_execute(full).unwrap();
    let response = app.create(&patient());
    let detail = "The service cannot reach its database; try again shortly";
    assert_problem(&response, 503, "Service Unavailable", detail);
    // A client that may wait for longer.
    let patient_service = service(&app.database).start();
    std::thread::scope(|scope| {
        let created = scope.spawn(|| patient_service.create(app.key(), &patient()));
        std::thread::sleep(std::time::Duration::from_millis(500));
        owner.batch_execute("DROP TRIGGER full_disk ON patients").unwrap();
        assert_eq!(created.join().unwrap().status, 201);
    });
    assert_eq!(app.patients(), 1);
    wait_for("its line", || app.service.output().contains("No space left on device"));
}

#[test]
fn an_unexpected_failure_is_500_and_reveals_nothing() {
    use diesel::connection::SimpleConnection;

    let app = TestApp::start();
    let forbid = "ALTER TABLE patients ADD CONSTRAINT forbidden CHECK (last_name <> 'Canary')";
    app.database.connect().batch_execute(forbid).unwrap();
    let response = app.create(&crate::patient_with("lastName", "Canary"));
    assert_problem(&response, 500, "Internal Server Error", "An unexpected error occurred");
    assert!(!app.service.output().contains("Canary"), "{}", app.service.output());
    let id = response.header("x-request-id").unwrap();
    wait_for("its line", || app.service.output().contains("a request failed unexpectedly"));
    let output = app.service.output();
    let line = output.lines().find(|line| line.contains("a request failed unexpectedly")).unwrap();
    assert!(line.contains(id) && line.contains("CheckViolation"), "one line tells who and why: {line}");
}

#[test]
fn one_row_never_fails_its_neighbours() {
    use diesel::connection::SimpleConnection;

    let app = TestApp::start();
    let mut holder = app.database.connect();
    let forbid = "ALTER TABLE patients ADD CONSTRAINT forbidden CHECK (last_name <> 'Canary')";
    holder.batch_execute(forbid).unwrap();
    // While the table is held, both writers wait with what they have, and everybody else gathers in the queue.
    holder.batch_execute("BEGIN; LOCK TABLE patients").unwrap();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let send = |number: usize| {
            let last_name = if number == 10 { "Canary" } else { "Lovelace" };
            let (app, patient) = (&app, crate::patient_with("lastName", last_name));
            scope.spawn(move || app.create(&patient).status)
        };
        let all: Vec<_> = (0..20)
            .map(|number| {
                let sent = send(number);
                std::thread::sleep(std::time::Duration::from_millis(20));
                sent
            })
            .collect();
        std::thread::sleep(std::time::Duration::from_millis(300));
        holder.batch_execute("COMMIT").unwrap();
        all.into_iter().map(|sent| sent.join().unwrap()).collect()
    });
    let expected: Vec<u16> = (0..20).map(|number| if number == 10 { 500 } else { 201 }).collect();
    assert_eq!(statuses, expected);
    assert_eq!(app.patients(), 19);
}
