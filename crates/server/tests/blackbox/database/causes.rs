//! The cause of a 503: the log has what the database last said, once a second, and answers say nothing of it.

use std::time::{Duration, Instant};

use intake_domain::Environment;
use intake_infra::prepare;
use intake_test_support::{Clinic, Service, patient, wait_for};
use serde_json::Value;

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
