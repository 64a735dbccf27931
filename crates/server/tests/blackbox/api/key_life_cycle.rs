//! A key opens the door from the moment it is made until the moment it is revoked, on every instance.

use std::sync::atomic::{AtomicBool, Ordering};

use diesel::connection::SimpleConnection;
use intake_domain::Environment;
use intake_edge as edge;
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
    assert_eq!(app.create(&serde_json::json!({})).status, 422);
    wait_for("the refusal", || app.database.count("key_refusals") == 1);
    assert_eq!(app.database.count("key_uses WHERE last_used_at IS NOT NULL"), 0, "no use");
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

#[test]
fn a_revocation_is_not_recorded_earlier_than_a_use_that_was_allowed() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    // A commit that takes long, as one that waits for a standby.
    let function = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$";
    app.database.connect().batch_execute(function).unwrap();
    let trigger = "CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON {table} DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION slow()";
    app.database.on_each_part_of("api_keys", trigger);
    let (id, key) = app.clinic.key();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = OverWhenDropped(&is_over);
        let use_it = scope.spawn(|| {
            let mut created = 0;
            while !is_over.load(Ordering::SeqCst) {
                created += usize::from(app.service.create(&key, &patient()).status == 201);
            }
            created
        });
        wait_for("a patient", || app.patients() > 0);
        app.clinic.revoke(id);
        drop(over);
        assert!(use_it.join().unwrap() > 1);
    });
    let later = "patients WHERE created_at > (SELECT date_trunc('milliseconds', revoked_at) FROM api_keys)";
    assert_eq!(app.database.count(later), 0);
    assert_eq!(app.database.count("api_keys WHERE revoked_at IS NOT NULL AND expires_at IS NULL"), 1, "as it was");
}

#[test]
fn entries_about_keys_name_the_key_by_its_id_and_hint() {
    let app = TestApp::start();
    let (id, key) = app.clinic.key();
    let _ = app.clinic.key();
    app.clinic.revoke(id);
    let hint = &key.expose()[key.expose().len() - 4..];
    let about =
        "SELECT concat_ws(' ', action, subject, key_hint) FROM audit_entries WHERE key_id IS NOT NULL AND key_id";
    let expected = ["created", "revoked"].map(|done| format!("key_{done} Test key {hint}"));
    assert_eq!(app.database.texts(&format!("{about} = '{id}' ORDER BY at")), expected);
    assert_eq!(app.database.texts(&format!("{about} <> '{id}'")).len(), 1);
    let page = app.member("ada@clinic.example").get("/settings/activity?kind=keys").text();
    assert!(
        page.contains(&format!("revoked the key <strong>Test key</strong> <span class=\"whole\">(…{hint})")),
        "{page}"
    );
}
