//! The cause of a 503: the log has what the database last said, once a second, and answers say nothing of it.

use std::time::{Duration, Instant};

use intake_domain::Environment;
use intake_infra::prepare;
use intake_test_support::{Clinic, Service, patient, wait_for};
use serde_json::Value;

use crate::commands::doctor::examine;
use crate::database::replication::{administer, server};
use crate::database::restoring::PostgresServer;
use crate::fixtures::program;

/// The lines about requests that got 503.
pub(super) fn causes(service: &Service) -> Vec<Value> {
    let lines = service.output();
    let lines = lines.lines().filter(|line| line.contains("a request was refused"));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_database_that_is_away_is_the_cause_of_a_line_a_second() {
    let postgres = PostgresServer::start();
    let urls = prepare(&postgres.server, "intake").unwrap();
    let key = Clinic::open(&urls.service, Environment::Development).key().1;
    let service = program().database_urls(&urls.service, &urls.owner).setting("INTAKE_DEADLINE", "300ms").start();
    assert_eq!(service.create(&key, &patient()).status, 201);
    postgres.stop();

    let started = Instant::now();
    let mut refused = 0;
    while started.elapsed() < Duration::from_secs(3) {
        let answers = std::thread::scope(|threads| {
            let create = || service.create(&key, &patient());
            let asked: Vec<_> = (0..4).map(|_| threads.spawn(create)).collect();
            asked.into_iter().map(|answer| answer.join().unwrap()).collect::<Vec<_>>()
        });
        for answer in answers {
            assert_eq!((answer.status, answer.json()["status"].as_i64()), (503, Some(503)));
            assert_eq!(answer.json()["detail"], "The service cannot reach its database; try again shortly");
            refused += 1;
        }
    }
    let most = usize::try_from(started.elapsed().as_secs()).unwrap() + 1;
    wait_for("the lines", || causes(&service).len() >= most - 1);
    let lines = causes(&service);
    assert!(lines.len() <= most && refused > 2 * most, "{refused} requests, {lines:?}");
    let left_out: u64 = lines.iter().map(|line| line["suppressed"].as_u64().unwrap()).sum();
    assert!(left_out > 0 && left_out + lines.len() as u64 <= refused as u64, "{lines:?}");
    for line in &lines {
        let cause = line["cause"].as_str().unwrap();
        assert!(
            cause.starts_with("the last error of the database: ") && cause.contains("connection to server"),
            "{cause}"
        );
    }
}

#[test]
fn a_synchronous_standby_that_is_gone_is_named_until_commits_end_again() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = server(folder.path());
    let urls = prepare(&postgres, "intake").unwrap();
    let key = Clinic::open(&urls.service, Environment::Development).key().1;
    let program = || program().database_urls(&urls.service, &urls.owner).setting("INTAKE_DEADLINE", "2s");
    let service = program().start();
    let create = || service.create(&key, &patient()).status;
    let readiness = || service.probe("/readyz").json();
    let set = |standbys: &str| {
        administer(&postgres, &format!("ALTER SYSTEM SET synchronous_standby_names = '{standbys}'"));
        administer(&postgres, "SELECT pg_reload_conf()");
    };
    let doctor = || {
        let (_, parts, _) = examine(program().setting("INTAKE_ADMIN_ADDR", service.admin_address().to_string()));
        ["service", "storing"].map(|name| parts.iter().find(|(part, ..)| part == name).unwrap().clone())
    };
    assert_eq!(create(), 201);
    service.wait_until_ready();
    let [_, storing] = doctor();
    assert_eq!(storing.1, Some(true), "{storing:?}");

    set("gone");
    // Before any patient waits, too.
    wait_for("the doctor to notice", || doctor()[1].1 == Some(false));
    let [_, (_, _, why)] = doctor();
    for part in ["IPC SyncRep", "'gone'", "connected: 0", "take it out of", "pg_stat_replication shows"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    assert_eq!(create(), 503);
    let named = "commits wait for a synchronous standby (SyncRep), as synchronous_standby_names = 'gone'";
    let is_named = |line: &Value| {
        let cause = line["cause"].as_str().unwrap();
        cause.starts_with("the last error of the database: ") && cause.contains(named)
    };
    wait_for("the cause", || create() == 503 && causes(&service).last().is_some_and(is_named));
    wait_for("the reason", || readiness()["reason"] == "writer");
    // A probe, which stores nothing, changes nothing.
    let until = Instant::now() + Duration::from_secs(4);
    while Instant::now() < until {
        assert_eq!(readiness()["reason"], "writer", "{}", service.output());
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(service.output().matches("the database is back").count(), 0, "{}", service.output());
    assert_eq!(doctor()[0].1, Some(false));

    set("");
    wait_for("a patient", || create() == 201);
    service.wait_until_ready();
    assert_eq!(doctor().map(|(_, is_in_order, _)| is_in_order), [Some(true); 2]);
}
