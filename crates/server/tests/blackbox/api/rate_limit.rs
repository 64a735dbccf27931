//! Each key has a rate of its own.

use std::time::{Duration, Instant};

use intake_test_support::{patient, wait_for};

use crate::assert_problem;
use crate::fixtures::TestApp;

#[test]
fn a_key_past_its_rate_learns_when_to_retry() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "1/3"));
    // A token comes back each second: on a busy machine it may take a few tries to be faster.
    let (mut key, mut burst) = (app.key().clone(), Vec::new());
    wait_for("four requests within a second", || {
        key = app.clinic.key().1;
        let started = Instant::now();
        burst = (0..4).map(|_| app.service.create(&key, &patient())).collect();
        started.elapsed() < Duration::from_millis(900)
    });
    for (response, remaining) in burst.iter().zip([2, 1, 0]) {
        assert_eq!(response.status, 201);
        assert_eq!(response.header("ratelimit-policy"), Some("\"default\";q=3;w=3"));
        let rate_limit = response.header("ratelimit").unwrap();
        assert!(rate_limit.starts_with(&format!("\"default\";r={remaining};t=")), "{rate_limit}");
    }
    let refused = &burst[3];
    assert_problem(refused, 429, "Too Many Requests", "The API key's rate limit is exceeded");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.header("ratelimit"), Some("\"default\";r=0;t=1"));
    let (_, other) = app.clinic.key();
    assert_eq!(app.service.create(&other, &patient()).status, 201, "another key has its own");
    std::thread::sleep(Duration::from_millis(1_100));
    assert_eq!(app.service.create(&key, &patient()).status, 201);
}

#[test]
fn a_stranger_past_the_rate_gets_429_and_before_it_401() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "1/1"));
    let unknown = app.clinic.unknown_key();
    let first = app.service.create(&unknown, &patient());
    assert_eq!(first.status, 401);
    assert!(first.header("ratelimit").is_some());
    wait_for("a refusal", || app.service.create_with(&unknown, &[], b"{").status == 429);
}

#[test]
fn refusals_count_as_requests_too() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "1/2"));
    assert_eq!(app.send_body("{").status, 400);
    wait_for("a refusal", || app.send_body("{").status == 429);
}

#[test]
fn without_a_limit_nothing_is_said_of_one() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let response = app.create(&patient());
    assert_eq!((response.status, response.header("ratelimit"), response.header("ratelimit-policy")), (201, None, None));
}
