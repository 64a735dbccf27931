//! A key opens the door from the moment it is made until the moment it is revoked, on every instance.

use std::sync::atomic::{AtomicBool, Ordering};

use diesel::connection::SimpleConnection;
use intake_domain::Environment;
use intake_http::edge;
use intake_test_support::{Clinic, TestDatabase, create_request, patient, wait_for};
use time::Duration;

use crate::assert_unauthorised;
use crate::fixtures::{OverWhenDropped, TestApp, service};

#[test]
fn a_revoked_key_is_refused_on_every_instance() {
    let app = TestApp::start();
    let second = service(&app.database).start();
    for _ in 0..10 {
        let (id, key) = app.clinic.key();
        assert_eq!(app.service.create(&key, &patient()).status, 201);
        assert_eq!(second.create(&key, &patient()).status, 201);
        app.clinic.revoke(id);
        assert_unauthorised(&second.create(&key, &patient()));
        assert_unauthorised(&app.service.create(&key, &patient()));
    }
    assert_eq!(app.patients(), 20);
}

#[test]
fn no_request_that_starts_after_a_revocation_creates_anything_under_load() {
    let database = TestDatabase::new();
    let instances =
        [service(&database), service(&database)].map(|builder| builder.setting("INTAKE_RATE_LIMIT", "off").start());
    let clinic = Clinic::open(&database.service, Environment::Development);
    let (id, key) = clinic.key();
    let is_revoked = AtomicBool::new(false);
    let bytes = create_request(&key, &[], patient().to_string().as_bytes());
    std::thread::scope(|scope| {
        let revoked = OverWhenDropped(&is_revoked);
        for instance in &instances {
            for _ in 0..8 {
                let (client, bytes, is_revoked) = (instance.client(), &bytes, &is_revoked);
                scope.spawn(move || {
                    let mut connection = client.connect();
                    loop {
                        let must_fail = is_revoked.load(Ordering::SeqCst);
                        let status = connection.exchange(bytes).status;
                        assert!(status == 201 || status == 401, "{status}");
                        assert!(!(must_fail && status == 201), "created after the revocation");
                        if must_fail {
                            return;
                        }
                    }
                });
            }
        }
        wait_for("some patients", || database.count("patients") > 50);
        clinic.revoke(id);
        drop(revoked);
    });
}

#[test]
fn a_key_ends_at_its_time() {
    let app = TestApp::start();
    let (id, key) = app.clinic.key_until(Some(edge::now() + Duration::HOUR));
    assert_eq!(app.service.create(&key, &patient()).status, 201);
    let sooner = format!("UPDATE api_keys SET expires_at = now() + interval '1 second' WHERE id = '{id}'");
    app.database.connect().batch_execute(&sooner).unwrap();
    wait_for("the end", || app.service.create(&key, &patient()).status == 401);
    assert_unauthorised(&app.service.create_with(&key, &[], b"{"));
}

#[test]
fn the_last_use_shows_up_soon() {
    let app = TestApp::start();
    assert_eq!(app.database.count("key_uses"), 0);
    assert_eq!(app.create(&patient()).status, 201);
    wait_for("the use", || app.database.count("key_uses WHERE last_used_at IS NOT NULL") == 1);
}

#[test]
fn only_the_digest_and_the_hint_of_a_key_are_stored() {
    let app = TestApp::start();
    assert_eq!(app.create(&patient()).status, 201);
    let key = app.key().expose();
    let (secret, hint) = (&key[12..42], &key[44..]);
    assert_eq!(app.database.tables_that_hold(secret), [""; 0]);
    assert_eq!(app.database.count(&format!("api_keys WHERE hint = '{hint}'")), 1);
}
