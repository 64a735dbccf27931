//! Round trips between the service and PostgreSQL, counted on the wire: one for a valid patient, one for a refusal
//! after the key was read, none for a malformed key. A lost answer of PostgreSQL costs nothing.

use intake_test_support::{create_request, patient, wait_for};

use crate::fixtures::TestApp;
use crate::service::metrics::value;

/// The least of at most ten rounds, which ends with the first that is as expected.
fn least(expected: usize, round: impl FnMut() -> usize) -> usize {
    let mut least = usize::MAX;
    for found in std::iter::repeat_with(round).take(10) {
        least = least.min(found);
        if least <= expected {
            break;
        }
    }
    least
}

#[test]
fn a_valid_patient_costs_one_round_trip_and_a_refusal_one_lookup() {
    let (counter, app) = TestApp::behind_a_proxy(|builder| builder);
    let good = create_request(app.key(), &[], patient().to_string().as_bytes());
    let invalid = create_request(app.key(), &[], b"{}");
    let unknown = create_request(&app.clinic.unknown_key(), &[], patient().to_string().as_bytes());
    let foreign = String::from_utf8(good.clone()).unwrap().replace("intake_demo_", "others_demo_").into_bytes();

    // Connections are made and statements are prepared by the first requests, and the key's first use is written.
    std::thread::scope(|scope| {
        for bytes in [&good, &invalid].repeat(16) {
            scope.spawn(|| app.service.client().send(bytes));
        }
    });
    wait_for("the first use", || app.database.count("key_uses") == 1);

    let mut connection = app.service.client().connect();
    for (bytes, status, expected) in [(&good, 201, 1), (&invalid, 422, 1), (&unknown, 401, 1), (&foreign, 401, 0)] {
        // Background writes and repeated statements add round trips: the minimum of a few rounds is without.
        let round = || {
            let _ = counter.take();
            for _ in 0..20 {
                assert_eq!(connection.exchange(bytes).status, status);
            }
            counter.take()
        };
        assert_eq!(least(20 * expected, round), 20 * expected, "for {status}");
    }
}

#[test]
fn a_lost_answer_loses_nothing_and_doubles_nothing() {
    let (counter, app) = TestApp::behind_a_proxy(|builder| builder);
    let mut created = 0;
    // The cut may hit the thread that writes the uses of keys instead: then once more.
    wait_for("a cut in the midst of a patient", || {
        assert_eq!(app.create(&patient()).status, 201);
        std::thread::sleep(std::time::Duration::from_millis(1_500));
        counter.cut_next_answer();
        let response = app.create(&patient());
        created += 2;
        assert_eq!((response.status, response.header("idempotent-replayed")), (201, None));
        assert_eq!(app.patients(), created, "stored before the cut, and not once more after it");
        app.service.output().contains("the database is away")
    });
    assert!(app.service.output().contains("the database is back"));
}

/// Cost of a batch of 256, for rows of every kind that is not simply created.
#[test]
fn a_mixed_batch_costs_four_round_trips_at_most() {
    let (counter, app) = TestApp::behind_a_proxy(|builder| {
        let builder = builder.setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1").setting("INTAKE_RATE_LIMIT", "off");
        builder.setting("INTAKE_WRITERS", "1")
    });
    let clinic = &app.clinic;
    let ((_, active), (id, revoked)) = (clinic.key(), clinic.key());
    clinic.revoke(id);
    let (_, expired) = clinic.key_until(Some(time::OffsetDateTime::UNIX_EPOCH));
    let unknown = clinic.unknown_key();
    let request = |key, idempotency_key: Option<&str>| {
        let https = ("X-Forwarded-Proto", "https");
        let retry = idempotency_key.map(|key| ("Idempotency-Key", key));
        let headers: Vec<_> = [https].into_iter().chain(retry).collect();
        create_request(key, &headers, patient().to_string().as_bytes())
    };
    let client = app.service.plain_client();
    for number in 0..64 {
        assert_eq!(client.send(&request(&active, Some(&number.to_string()))).status, 201);
    }
    // The batch gathers behind one request whose statement is on its way for a while. After a second it is abandoned,
    // and what waits gets 503: such a round does not count.
    let kinds = [(&active, 201), (&revoked, 401), (&expired, 401), (&unknown, 401)];
    let of_kind = |number: usize| {
        let (key, _) = kinds[number % 4];
        request(key, (key == &active).then(|| (number / 4).to_string()).as_deref())
    };
    let (alone, together) = (request(&active, None), (0..256).map(of_kind).collect::<Vec<_>>());
    let round = || {
        let mut first = client.connect();
        let mut connections: Vec<_> = together.iter().map(|_| client.connect()).collect();
        counter.hang_for_all();
        first.write(&alone);
        std::thread::sleep(std::time::Duration::from_millis(50));
        for (connection, request) in connections.iter_mut().zip(&together) {
            connection.write(request);
        }
        wait_for("all requests", || value(&app.service, "intake_requests_in_flight") > 256.5);
        std::thread::sleep(std::time::Duration::from_millis(50));
        let _ = counter.take();
        counter.resume();
        let first = first.read().status;
        let answers: Vec<_> = connections.iter_mut().map(intake_test_support::Connection::read).collect();
        if first == 503 || answers.iter().any(|answer| answer.status == 503) {
            return usize::MAX;
        }
        assert_eq!(first, 201);
        for (number, answer) in answers.iter().enumerate() {
            assert_eq!(answer.status, kinds[number % 4].1, "{}", answer.text());
            assert_eq!(answer.header("idempotent-replayed").is_some(), answer.status == 201);
        }
        counter.take()
    };
    // One finds out that nobody has the unknown key, one stores, one checks the other keys, and one
    // for what was stored before. Now and then the uses of keys are written in the same moment: the least of a few
    // rounds is without.
    assert_eq!(least(1 + 4, round), 1 + 4, "the first request's, and four");
}
