//! Readiness: `/readyz` says in a word why the service should get no requests, asks the database rarely, and never
//! hangs. A service that stops says so before it refuses anybody.

use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use intake_infra::SERVICE_ROLE;
use intake_test_support::{Service, create_request, patient, wait_for};
use serde_json::json;

use crate::commands::doctor::examine;
use crate::fixtures::{TestApp, service};

/// None: the service is ready.
fn reason(service: &Service) -> Option<String> {
    let probe = service.probe("/readyz");
    let body = probe.json();
    if probe.status == 200 {
        assert_eq!(body, json!({ "ready": true }));
        return None;
    }
    let reason = body["reason"].as_str().unwrap().to_owned();
    assert_eq!((probe.status, &body), (503, &json!({ "ready": false, "reason": reason })));
    Some(reason)
}

fn wait_until_ready(app: &TestApp) {
    wait_for("readiness", || reason(&app.service).is_none());
}

fn wait_for_reason(app: &TestApp, expected: &str) {
    wait_for(expected, || reason(&app.service).as_deref() == Some(expected));
}

#[test]
fn readyz_names_what_the_database_lacks_until_it_is_mended() {
    let app = TestApp::start();
    wait_until_ready(&app);
    let newest = "version = (SELECT max(version) FROM __diesel_schema_migrations)";
    for (word, harm, mend) in [
        (
            "grants",
            format!("REVOKE INSERT ON patients FROM {SERVICE_ROLE}"),
            format!("GRANT INSERT ON patients TO {SERVICE_ROLE}"),
        ),
        (
            "grants",
            format!("REVOKE SELECT ON __diesel_schema_migrations FROM {SERVICE_ROLE}"),
            format!("GRANT SELECT ON __diesel_schema_migrations TO {SERVICE_ROLE}"),
        ),
        (
            "unmigrated",
            format!("UPDATE __diesel_schema_migrations SET version = 'not ' || version WHERE {newest}"),
            format!("UPDATE __diesel_schema_migrations SET version = substr(version, 5) WHERE {newest}"),
        ),
        (
            "environment",
            "UPDATE environment_stamp SET environment = 'production'".to_owned(),
            "UPDATE environment_stamp SET environment = 'development'".to_owned(),
        ),
    ] {
        app.database.connect().batch_execute(&harm).unwrap();
        wait_for_reason(&app, word);
        app.database.connect().batch_execute(&mend).unwrap();
        wait_until_ready(&app);
    }
}

#[test]
fn a_database_that_is_away_or_read_only_is_named_by_readyz() {
    let app = TestApp::start();
    let name = app.database.name();
    for (word, harm, mend) in [
        ("unreachable", "ALLOW_CONNECTIONS false", "ALLOW_CONNECTIONS true"),
        ("read-only", "SET default_transaction_read_only = on", "SET default_transaction_read_only = off"),
    ] {
        let change = |change| {
            format!(
                "ALTER DATABASE {name} {change};
                 SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
            )
        };
        app.database.administer(&change(harm));
        wait_for_reason(&app, word);
        assert_eq!(app.service.probe("/livez").status, 200);
        app.database.administer(&change(mend));
        wait_until_ready(&app);
    }
}

#[test]
fn a_writer_that_can_store_nothing_is_named_by_readyz() {
    let app = TestApp::start();
    let mut holder = app.database.connect();
    holder.batch_execute("BEGIN; LOCK TABLE patients").unwrap();
    wait_for_reason(&app, "writer");
    holder.batch_execute("COMMIT").unwrap();
    wait_until_ready(&app);
    assert_eq!(app.patients(), 0, "a probe stores nothing");
}

/// Sleeps in each statement that stores patients, before it stores them or with them locked.
fn slow_down(app: &TestApp, when: &str) {
    let slow = format!(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1.7); RETURN NULL; END';
         CREATE TRIGGER slow {when} INSERT ON patients FOR EACH STATEMENT EXECUTE FUNCTION slow()"
    );
    app.database.connect().batch_execute(&slow).unwrap();
}

#[test]
fn a_database_that_is_slow_is_ready_for_as_long_as_requests_are_answered_in_time() {
    for when in ["BEFORE", "AFTER"] {
        let app = TestApp::on_one_server(|builder| builder.setting("INTAKE_DEADLINE", "10s"));
        wait_until_ready(&app);
        slow_down(&app, when);
        let until = Instant::now() + Duration::from_secs(8);
        let mut found = std::thread::scope(|threads| {
            let clients = [0, 1, 2].map(|number| {
                let create = || app.create(&patient()).status;
                threads.spawn(move || {
                    std::thread::sleep(Duration::from_millis(600 * number));
                    while Instant::now() < until {
                        assert_eq!(create(), 201);
                    }
                })
            });
            let mut found = Vec::new();
            while Instant::now() < until {
                let asked = Instant::now();
                found.push((reason(&app.service), asked.elapsed()));
                std::thread::sleep(Duration::from_millis(300));
            }
            clients.into_iter().for_each(|client| client.join().unwrap());
            found
        });
        // Without requests, too.
        found.push((reason(&app.service), Duration::ZERO));
        assert!(found.iter().all(|(reason, _)| reason.is_none()), "{when}: {found:?}");
    }
}

#[test]
fn a_query_that_fails_is_not_called_a_database_that_is_away() {
    let app = TestApp::start();
    wait_until_ready(&app);
    let said = |words: &str| app.service.output().matches(words).count();
    let failed = "a query that /readyz needs failed";
    let examine = || {
        let admin = app.service.admin_address().to_string();
        let (_, parts, _) = examine(service(&app.database).setting("INTAKE_ADMIN_ADDR", admin));
        parts.into_iter().filter(|(_, is_in_order, _)| *is_in_order == Some(false)).collect::<Vec<_>>()
    };
    app.database.connect().batch_execute("ALTER TABLE api_keys RENAME TO elsewhere").unwrap();
    wait_for("a reason", || reason(&app.service).is_some());
    for _ in 0..3 {
        assert_eq!(reason(&app.service).as_deref(), Some("writer"), "{}", app.service.output());
        std::thread::sleep(Duration::from_millis(1_100));
    }
    wait_for("the log", || said(failed) == 1);
    let cause = app.service.output().lines().find(|line| line.contains(failed)).unwrap().to_owned();
    assert!(cause.contains(r#"relation \"api_keys\" does not exist"#), "{cause}");
    let wrong = examine();
    assert!(wrong[0].0 == "service" && wrong[0].2.contains("writer"), "{wrong:?}");
    assert!(wrong.iter().all(|(_, _, why)| !why.contains("unreachable")), "{wrong:?}");
    app.database.connect().batch_execute("ALTER TABLE elsewhere RENAME TO api_keys").unwrap();
    wait_until_ready(&app);

    // A database that does not answer keeps its word.
    app.database.administer(&format!("ALTER DATABASE {} ALLOW_CONNECTIONS false", app.database.name()));
    app.database.administer(&format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'",
        app.database.name()
    ));
    wait_for_reason(&app, "unreachable");
    assert!(examine()[0].2.contains("unreachable"));
    assert_eq!(said(failed), 1, "{}", app.service.output());
}

#[test]
fn a_database_that_hangs_does_not_make_a_probe_hang() {
    let (proxy, app) = TestApp::behind_a_proxy(|builder| builder);
    proxy.hang_for_all();
    let asked = Instant::now();
    assert_eq!(reason(&app.service).as_deref(), Some("unreachable"));
    // A statement would hang until the database goes on.
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    proxy.resume();
    wait_until_ready(&app);
}

#[test]
fn many_probes_cost_the_database_one_check_a_second() {
    let (proxy, app) = TestApp::behind_a_proxy(|builder| builder);
    wait_until_ready(&app);
    let mut of_a_check = 0;
    wait_for("a check", || {
        std::thread::sleep(Duration::from_millis(1_100));
        let _ = proxy.take();
        let is_ready = reason(&app.service).is_none();
        of_a_check = proxy.take();
        is_ready && of_a_check > 0
    });
    let asked = Instant::now();
    for _ in 0..100 {
        let _ = reason(&app.service);
    }
    let seconds = usize::try_from(asked.elapsed().as_secs()).unwrap();
    let of_all = proxy.take();
    // Far less than for a hundred checks, even if some begin anew.
    assert!(of_all <= 2 * (2 + seconds) * of_a_check, "{of_all} in {seconds} s, and {of_a_check} for one check");
}

#[test]
fn a_service_that_drains_says_so_and_still_takes_connections() {
    let mut app = TestApp::start_with(|builder| builder.setting("INTAKE_DRAIN_DELAY", "20s"));
    let create = create_request(app.key(), &[], patient().to_string().as_bytes());
    let mut lasting = app.service.client().connect();
    let before = lasting.exchange(&create);
    assert_eq!((before.status, before.header("connection")), (201, None));
    let asked = Instant::now();
    app.service.signal("TERM");
    wait_for_reason(&app, "draining");
    for answer in [lasting.exchange(&create), app.create(&patient()), app.send_body("{}")] {
        assert!([201, 422].contains(&answer.status), "{}", answer.text());
        assert_eq!(answer.header("connection"), Some("close"));
    }
    assert!(lasting.is_closed_within(Duration::from_secs(10)), "half of the time is over");
    assert_eq!(app.service.wait().code(), Some(0), "{}", app.service.output());
    assert!(asked.elapsed() >= Duration::from_secs(20), "{:?}", asked.elapsed());
    assert_eq!(app.patients(), 3);
}

#[test]
fn a_second_signal_ends_a_service_that_drains_at_once() {
    let mut app = TestApp::start_with(|builder| builder.setting("INTAKE_DRAIN_DELAY", "10m"));
    app.service.signal("TERM");
    wait_for_reason(&app, "draining");
    app.service.signal("TERM");
    assert_eq!(app.service.wait().code(), Some(130));
}
