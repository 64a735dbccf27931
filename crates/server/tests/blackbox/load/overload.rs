//! More requests than can be served: new ones are refused at once, and those that wait already are served.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use intake_test_support::{Connection, create_request, patient, wait_for};

use crate::assert_problem;
use crate::fixtures::{TestApp, alone};

/// Nearly six batches, which take longer than a request may wait.
const CLIENTS: usize = 1_500;
/// Time that each statement takes before the crowd comes. The time grows step by step: a statement that took far longer
/// than those before it would count as hanging.
const SECONDS: [f32; 9] = [0.5, 0.5, 0.5, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0];
/// Less than six batches take after that, and far longer than the crowd needs to arrive on a busy machine.
const DEADLINE: &str = "20s";

/// In which an answer that is there is read.
const MOMENT: Duration = Duration::from_millis(1);

fn slow_down(owner: &mut PgConnection, seconds: f32) {
    let function = format!(
        "CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN PERFORM pg_sleep({seconds}); RETURN NULL; END $$"
    );
    owner.batch_execute(&function).unwrap();
}

#[test]
fn a_request_that_would_wait_too_long_is_refused_at_once() {
    let _alone = alone();
    let app = TestApp::start_with(|builder| {
        let builder = builder.setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1").setting("INTAKE_RATE_LIMIT", "off");
        builder.setting("INTAKE_DEADLINE", DEADLINE).setting("INTAKE_WRITERS", "1")
    });
    let mut owner = app.database.connect();
    slow_down(&mut owner, 0.0);
    let slow = "CREATE TRIGGER slow AFTER INSERT ON patients FOR EACH STATEMENT EXECUTE FUNCTION slow()";
    owner.batch_execute(slow).unwrap();
    let create = create_request(app.key(), &[("X-Forwarded-Proto", "https")], patient().to_string().as_bytes());
    let client = app.service.plain_client();
    // How slow the database is becomes known by what it does.
    for seconds in SECONDS {
        slow_down(&mut owner, seconds);
        assert_eq!(client.send(&create).status, 201);
    }
    let mut connections: Vec<Connection> = (0..CLIENTS).map(|_| client.connect()).collect();
    // While the table is held, nobody is served.
    owner.batch_execute("BEGIN; LOCK TABLE patients").unwrap();
    connections.iter_mut().for_each(|connection| connection.write(&create));
    // Only those that came last are refused, and never a scrape of the metrics, which would try the database.
    let mut refused = None;
    wait_for("the first refusal", || {
        let answers = connections.iter_mut().enumerate().skip(1).rev();
        refused = answers.into_iter().find_map(|(number, one)| Some((number, one.read_within(MOMENT).ok()?)));
        refused.is_some()
    });
    let (number, refused) = refused.unwrap();
    drop(connections.swap_remove(number));
    let newcomer = client.send(&create);
    for refused in [&refused, &newcomer] {
        assert_problem(refused, 503, "Service Unavailable", "The service is overloaded; try again shortly");
    }
    assert_eq!(newcomer.header("retry-after"), Some("1"));
    // At once: had the newcomer waited as long as a request may, those who came before would have an answer by now.
    let first = connections[0].read_within(MOMENT);
    assert!(first.is_err(), "{first:?}");

    slow_down(&mut owner, 0.0);
    owner.batch_execute("COMMIT").unwrap();
    let statuses: Vec<u16> = connections.iter_mut().map(|connection| connection.read().status).collect();
    let created = statuses.iter().filter(|status| **status == 201).count();
    assert!(created >= 256, "whole batches are stored: {created}");
    assert!(statuses.iter().all(|status| matches!(status, 201 | 503)), "{statuses:?}");
    assert_eq!(client.send(&create).status, 201, "and it goes on");
}
