//! A foreign transaction holds a row, or the whole table. Only requests for that row wait.

use std::thread;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use intake_test_support::{create_request, patient, wait_for};

use crate::fixtures::{TestApp, in_time, time_of};

/// Holds a row under an idempotency key, as an instance does that was stopped in the middle of its work.
fn hold(app: &TestApp, idempotency_key: &str) -> PgConnection {
    let mut holder = app.database.connect();
    let row = format!(
        "BEGIN; INSERT INTO patients (organisation_id, id, first_name, last_name, phone_number, date_of_birth, created_at,
             updated_at, idempotency_key, request_digest)
         VALUES ('{}', gen_random_uuid(), 'Ada', 'Held', '+61412345678', '1985-12-10', now(), now(), '{idempotency_key}',
             '\\x00')",
        app.clinic.organisation
    );
    holder.batch_execute(&row).unwrap();
    holder
}

fn request(app: &TestApp, idempotency_key: Option<&str>) -> Vec<u8> {
    let headers: Vec<_> = idempotency_key.map(|key| ("Idempotency-Key", key)).into_iter().collect();
    create_request(app.key(), &headers, patient().to_string().as_bytes())
}

#[test]
fn a_locked_row_delays_only_its_sender() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_DEADLINE", "20s").setting("INTAKE_WRITERS", "1"));
    assert_eq!(app.create(&patient()).status, 201);
    let mut holder = hold(&app, "held");
    let client = app.service.client();
    let mut created = 1 + 8 * 50;
    thread::scope(|scope| {
        let held: Vec<_> = (0..8).map(|_| scope.spawn(|| client.send(&request(&app, Some("held"))))).collect();
        let others: Vec<_> = (0..8)
            .map(|lane| {
                let (app, client) = (&app, &client);
                scope.spawn(move || {
                    let mut connection = client.connect();
                    for number in 0..50 {
                        let key = format!("{lane}-{number}");
                        // Every second one could have to wait, for all that anyone knows.
                        let key = (number % 2 == 0).then_some(key.as_str());
                        assert_eq!(connection.exchange(&request(app, key)).status, 201);
                    }
                })
            })
            .collect();
        others.into_iter().for_each(|other| other.join().unwrap());
        // One after the other, all fifty of each lane are done before a single request is given up.
        assert!(held.iter().all(|one| !one.is_finished()), "the others waited for the row");
        in_time(Duration::from_millis(800), || {
            created += 1;
            let request = request(&app, Some(&format!("quick-{created}")));
            time_of(|| assert_eq!(client.send(&request).status, 201))
        });
        for one in held {
            assert_eq!(one.join().unwrap().status, 503);
        }
    });
    // A try that was under way when its request got 503 may still be carried out: not when nothing waits any more.
    let busy = "pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()
        AND usename = 'intake_service'";
    wait_for("the last try", || {
        thread::sleep(Duration::from_millis(500));
        app.database.count(busy) == 0
    });
    holder.batch_execute("ROLLBACK").unwrap();
    let answer = client.send(&request(&app, Some("held")));
    assert_eq!((answer.status, answer.header("idempotent-replayed")), (201, None));
    assert_eq!(app.patients(), created + 1);
}

#[test]
fn a_request_for_a_locked_row_is_answered_as_soon_as_the_row_is_free() {
    let app = TestApp::start();
    for is_stored in [false, true] {
        let mut round = 0;
        in_time(Duration::from_millis(500), || {
            round += 1;
            let key = format!("held-{is_stored}-{round}");
            let mut holder = hold(&app, &key);
            thread::scope(|scope| {
                let waiting = scope.spawn(|| app.service.client().send(&request(&app, Some(&key))));
                thread::sleep(Duration::from_millis(600));
                holder.batch_execute(if is_stored { "COMMIT" } else { "ROLLBACK" }).unwrap();
                time_of(|| {
                    let answer = waiting.join().unwrap();
                    // What was stored meanwhile is another patient.
                    assert_eq!(answer.status, if is_stored { 422 } else { 201 }, "{}", answer.text());
                })
            })
        });
    }
}

#[test]
fn many_locked_rows_let_the_others_pass_and_are_stored_in_the_end() {
    let app = TestApp::start();
    let mut holders: Vec<_> = (0..20).map(|number| hold(&app, &format!("held-{number}"))).collect();
    let client = app.service.client();
    let mut created = 0;
    thread::scope(|scope| {
        let held: Vec<_> = (0..20)
            .map(|number| {
                let (app, client) = (&app, &client);
                scope.spawn(move || client.send(&request(app, Some(&format!("held-{number}")))).status)
            })
            .collect();
        thread::sleep(Duration::from_millis(500));
        for _ in 0..20 {
            in_time(Duration::from_millis(800), || {
                created += 1;
                let free = request(&app, Some(&format!("free-{created}")));
                time_of(|| assert_eq!(client.send(&free).status, 201))
            });
        }
        holders.iter_mut().for_each(|holder| holder.batch_execute("ROLLBACK").unwrap());
        assert!(held.into_iter().all(|one| one.join().unwrap() == 201));
    });
    assert_eq!(app.patients(), created + 20);
}
