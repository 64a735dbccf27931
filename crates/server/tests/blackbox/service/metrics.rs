//! Metrics: everything that happens is counted where it belongs, in a form that Prometheus' own tool has no fault to
//! find with, and without the name of a key, an organisation or a person.

use std::io::Write;
use std::process::{Command, Stdio};

use diesel::connection::SimpleConnection;
use intake_infra::SERVICE_ROLE;
use intake_infra::embedded::Packages;
use intake_test_support::{Prerequisite, Service, create_request, leave_out, patient, request, wait_for};

use crate::fixtures::{TestApp, password_field, post};

/// Debian's package of Prometheus, which has promtool.
pub(crate) const PROMTOOL: Prerequisite = Prerequisite {
    subject: "metrics",
    need: "promtool",
    packages: Packages {
        apt: "apt-get install prometheus",
        dnf: "dnf install golang-github-prometheus",
        brew: "brew install prometheus",
    },
};

/// Those of the contract with operators, beside the ones that come with an example below.
const PROMISED: [&str; 22] = [
    "intake_answers_total",
    "intake_batch_rows",
    "intake_build_info",
    "intake_certificate_end_seconds",
    "intake_connections",
    "intake_database_connections",
    "intake_database_errors_total",
    "intake_database_reconnects_total",
    "intake_mails_sent_total",
    "intake_mails_dropped_total",
    "intake_keys_refused_total",
    "intake_queue_length",
    "intake_queue_wait_seconds",
    "intake_ready",
    "intake_request_duration_seconds",
    "intake_requests_in_flight",
    "intake_sign_ins_total",
    "intake_statement_duration_seconds",
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
];

/// The value of a sample, which is named with its labels. Zero where there is none.
pub(crate) fn value(service: &Service, sample: &str) -> f64 {
    let text = service.probe("/metrics").text();
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().unwrap())
}

#[track_caller]
fn assert_counted(service: &Service, sample: &str, expected: f64) {
    let found = value(service, sample);
    assert!((found - expected).abs() < f64::EPSILON, "{sample}: {found}");
}

/// Runs promtool with this text as its input. None, where there is none.
pub(crate) fn promtool(arguments: &[&str], input: &str) -> Option<(bool, String)> {
    let started = Command::new("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = started else {
        leave_out(&PROMTOOL);
        return None;
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Some((output.status.success(), text))
}

#[test]
fn promtool_finds_no_fault_and_nothing_names_a_caller() {
    let app = TestApp::start();
    let member = app.member("ada@clinic.example");
    for body in [patient().to_string(), "{".to_owned(), "{}".to_owned()] {
        let _ = app.send_body(body);
    }
    let invitation = app.invite("bob@clinic.example");
    assert_eq!(app.service.client().send(&request("GET", &invitation, &[], b"")).status, 200);
    assert_eq!(app.service.client().send(&request("GET", "/no/such/page", &[], b"")).status, 404);
    assert_eq!(member.get("/settings/api-keys").status, 200);

    let text = app.service.probe("/metrics").text();
    for name in PROMISED {
        assert!(text.contains(&format!("\n# TYPE {name} ")) || text.starts_with(&format!("# HELP {name} ")), "{name}");
    }
    let secret_part = invitation.rsplit('/').next().unwrap();
    let organisation = app.clinic.organisation.to_string();
    for name in [&organisation, secret_part, "ada@", "Jane", app.key().hint(), "/no/such"] {
        assert!(!text.contains(name), "{name}: {text}");
    }
    assert!(text.contains("{route=\"/invitations/{token}\",status=\"2xx\","), "{text}");
    if let Some((is_clean, complaint)) = promtool(&["check", "metrics"], &text) {
        assert!(is_clean && complaint.is_empty(), "{complaint}");
    }
}

/// Each scrape of each instance is stored.
#[test]
fn what_is_exported_does_not_grow_unnoticed() {
    let text = TestApp::start().service.probe("/metrics").text();
    let families = text.matches("# TYPE ").count();
    assert!(families <= 39 && text.len() <= 10_000, "{families} families, {} bytes", text.len());
}

/// Else the first test could not fail.
#[test]
fn promtool_finds_faults_where_there_are_some() {
    let wrong = "# HELP intake_things Things.\n# TYPE intake_things counter\nintake_things 1\n";
    if let Some((is_clean, complaint)) = promtool(&["check", "metrics"], wrong) {
        assert!(!is_clean && complaint.contains("_total"), "{complaint}");
    }
}

#[test]
fn every_request_is_timed_by_its_route_and_status_class() {
    let app = TestApp::start();
    for body in [patient().to_string(), patient().to_string(), "{".to_owned()] {
        let _ = app.send_body(body);
    }
    for path in ["/nowhere", "/nowhere/else"] {
        let _ = app.service.client().send(&request("GET", path, &[], b""));
    }
    let _ = app.service.plain_client().send(&request("GET", "/sign-in", &[], b""));
    for (labels, count) in [
        ("route=\"/api/v1/patients\",status=\"2xx\"", 2.0),
        ("route=\"/api/v1/patients\",status=\"4xx\"", 1.0),
        ("route=\"/sign-in\",status=\"4xx\"", 1.0),
    ] {
        assert_counted(&app.service, &format!("intake_request_duration_seconds_count{{{labels}}}"), count);
        let beyond = format!("intake_request_duration_seconds_bucket{{{labels},le=\"+Inf\"}}");
        assert_counted(&app.service, &beyond, count);
        let seconds = value(&app.service, &format!("intake_request_duration_seconds_sum{{{labels}}}"));
        assert!(seconds > 0.0 && seconds < 600.0, "{labels}: {seconds}");
    }
    let text = app.service.probe("/metrics").text();
    assert!(!text.contains("nowhere"), "{text}");
    // Two creates, and the key of the third request, which is looked up; readiness asks the writer, too.
    assert!(value(&app.service, "intake_batch_rows_sum") >= 3.0);
    assert!(value(&app.service, "intake_queue_wait_seconds_count") >= 3.0);
    assert!(value(&app.service, "intake_statement_duration_seconds_count") >= 3.0);
}

#[test]
fn refused_keys_are_counted_by_reason_and_limited_ones_apart() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "1/2"));
    let create = |authorization: &[(&str, &str)]| {
        app.service.client().send(&request("POST", "/api/v1/patients", authorization, b"{}")).status
    };
    let (most, last) = app.key().expose().split_at(app.key().expose().len() - 1);
    let mistyped = format!("Bearer {most}{}", if last == "x" { "y" } else { "x" });
    let other = format!("Bearer {}", app.key().expose().replace("_demo_", "_live_"));
    for authorization in [&[][..], &[("Authorization", "Bearer me")], &[("Authorization", &mistyped)]] {
        assert_eq!(create(authorization), 401);
    }
    assert_eq!(create(&[("Authorization", &other)]), 401);
    assert_eq!(app.service.create(&app.clinic.unknown_key(), &patient()).status, 401);
    let mut limited = 0;
    wait_for("refusals", || {
        limited += u32::from(app.create(&patient()).status == 429);
        limited >= 3
    });
    for (reason, count) in
        [("missing", 1.0), ("malformed", 1.0), ("checksum", 1.0), ("other-environment", 1.0), ("unknown", 1.0)]
    {
        assert_counted(&app.service, &format!("intake_keys_refused_total{{reason=\"{reason}\"}}"), count);
    }
    assert_counted(&app.service, "intake_keys_refused_total{reason=\"revoked\"}", 0.0);
    assert_counted(&app.service, "intake_keys_rate_limited_total", limited.into());
    let seen = app.service.plain_client().send(&create_request(app.key(), &[], b"{}"));
    assert_eq!(seen.status, 426);
    assert_counted(&app.service, "intake_keys_sent_in_clear_total", 1.0);
}

#[test]
fn waiting_requests_are_counted() {
    let app = TestApp::start();
    let mut holder = app.database.connect();
    holder.batch_execute("BEGIN; LOCK TABLE patients").unwrap();
    let mut connections: Vec<_> = (0..5).map(|_| app.service.client().connect()).collect();
    for connection in &mut connections {
        connection.write(&create_request(app.key(), &[], patient().to_string().as_bytes()));
    }
    wait_for("five requests in flight", || value(&app.service, "intake_requests_in_flight") > 4.5);
    assert_counted(&app.service, "intake_connections_by_state{state=\"busy\"}", 5.0);
    // The first of them is in the database.
    wait_for("a queue", || value(&app.service, "intake_queue_length") >= 1.0);
    wait_for("the end of readiness", || value(&app.service, "intake_ready") < 0.5);
    holder.batch_execute("COMMIT").unwrap();
    for connection in &mut connections {
        assert_eq!(connection.read().status, 201);
    }
    wait_for("an empty queue", || value(&app.service, "intake_queue_length") < 0.5);
    wait_for("nothing in flight", || value(&app.service, "intake_requests_in_flight") < 0.5);
    let idle = || value(&app.service, "intake_connections_by_state{state=\"idle\"}");
    wait_for("five idle connections", || (4.5..5.5).contains(&idle()));
    wait_for("readiness", || value(&app.service, "intake_ready") > 0.5);
    assert!(value(&app.service, "intake_database_connections") >= 1.0);
}

#[test]
fn a_database_that_fails_is_counted_by_the_class_of_its_error() {
    let app = TestApp::start();
    assert_eq!(app.create(&patient()).status, 201);
    let of_class = |class: &str| value(&app.service, &format!("intake_database_errors_total{{class=\"{class}\"}}"));
    let forbid = "ALTER TABLE patients ADD CONSTRAINT forbidden CHECK (last_name <> 'Forbidden')";
    app.database.connect().batch_execute(forbid).unwrap();
    assert_eq!(app.create(&crate::patient_with("lastName", "Forbidden")).status, 500);
    assert!(of_class("23") >= 1.0);
    let before = value(&app.service, "intake_database_reconnects_total");
    app.database.administer(&format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{SERVICE_ROLE}' AND datname = '{}'",
        app.database.name()
    ));
    wait_for("a create over another connection", || app.create(&patient()).status == 201);
    assert!(of_class("08") >= 1.0);
    assert!(value(&app.service, "intake_database_reconnects_total") > before);
}

#[test]
fn sign_ins_are_counted_by_how_they_ended() {
    let app = TestApp::start();
    let _ = app.member("ada@clinic.example");
    for (password, outcome) in [("wrong and long enough", "wrong-pair"), (crate::fixtures::PASSWORD, "signed-in")] {
        let form = format!("email=ada%40clinic.example&{}", password_field(password));
        let _ = post(&app.service.client(), "/sign-in", &[], &form);
        assert_counted(&app.service, &format!("intake_sign_ins_total{{outcome=\"{outcome}\"}}"), 1.0);
    }
    wait_for("an empty queue", || value(&app.service, "intake_hashing_queue_length") < 0.5);
}
