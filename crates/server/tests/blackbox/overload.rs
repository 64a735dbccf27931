//! More than can be done: newcomers are told at once, and whoever waits already is served.

use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use intake_test_support::{Connection, create_request, patient};

use crate::assert_problem;
use crate::fixtures::{TestApp, alone};

/// Nearly six batches, which take longer than a request may wait.
const CLIENTS: usize = 1_500;

#[test]
fn who_would_wait_too_long_is_refused_at_once() {
    let _alone = alone();
    let app = TestApp::start_with(|builder| {
        let builder = builder.setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1").setting("INTAKE_RATE_LIMIT", "off");
        builder.setting("INTAKE_DEADLINE", "1s").setting("INTAKE_WRITERS", "1")
    });
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_sleep(0.4); RETURN NULL; END $$;
        CREATE TRIGGER slow AFTER INSERT ON patients FOR EACH STATEMENT EXECUTE FUNCTION slow()";
    app.database.connect().batch_execute(slow).unwrap();
    let create = create_request(app.key(), &[("X-Forwarded-Proto", "https")], patient().to_string().as_bytes());
    let client = app.service.plain_client();
    let mut connections: Vec<Connection> = (0..CLIENTS).map(|_| client.connect()).collect();
    // How slow the database is becomes known by what it does.
    for _ in 0..6 {
        assert_eq!(connections[0].exchange(&create).status, 201);
    }
    connections.iter_mut().for_each(|connection| connection.write(&create));
    let asked = Instant::now();
    let newcomer = client.send(&create);
    let waited = asked.elapsed();
    assert_problem(&newcomer, 503, "Service Unavailable", "The service is full; try again shortly");
    assert_eq!(newcomer.header("retry-after"), Some("1"));
    assert!(waited < Duration::from_millis(300), "{waited:?}");

    let statuses: Vec<u16> = connections.iter_mut().map(|connection| connection.read().status).collect();
    let created = statuses.iter().filter(|status| **status == 201).count();
    assert!(created >= 256, "whole batches are stored: {created}");
    assert!(statuses.iter().all(|status| matches!(status, 201 | 503)), "{statuses:?}");
    assert_eq!(client.send(&create).status, 201, "and it goes on");
}
