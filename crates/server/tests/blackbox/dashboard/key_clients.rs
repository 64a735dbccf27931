//! The page of a key says from which address and by which program the key was last used. Only trusted proxies are
//! believed, and only accepted requests count.

use intake_test_support::{create_request, patient, wait_for};

use crate::fixtures::TestApp;

#[test]
fn the_page_of_a_key_says_where_the_key_was_last_used_from() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_TRUSTED_PROXIES", "127.0.0.1"));
    let ada = app.member("ada@clinic.example");
    let (id, key) = app.clinic.key();
    let (idle, _) = app.clinic.key();
    let page = |id| ada.get(&format!("/settings/api-keys/{id}")).text();
    assert!(!page(id).contains("Last used from"));
    let body = patient().to_string();
    // No proxy ends TLS in front of this listener.
    let headers = [("User-Agent", "python-requests/2.32 <b>"), ("X-Forwarded-For", "198.51.100.7")];
    assert_eq!(app.service.create_with(&key, &headers, body.as_bytes()).status, 201);
    wait_for("the client", || app.database.count("key_uses WHERE last_address = '127.0.0.1'") == 1);
    let shown = page(id);
    assert!(
        shown.contains(
            "<dt>Last used from</dt><dd>127.0.0.1</dd><dt>Software</dt><dd>python-requests/2.32 &#60;b&#62;</dd>"
        ),
        "{shown}"
    );
    assert!(!shown.contains("198.51.100.7"));

    // The proxy adds the last address; the client claims the others. A refused request is no use.
    let forwarded =
        [("X-Forwarded-Proto", "https"), ("X-Forwarded-For", "198.51.100.7, 203.0.113.9"), ("User-Agent", "Booking/7")];
    assert_eq!(app.service.create_with(&key, &[("User-Agent", "Refused/1")], b"{").status, 400);
    assert_eq!(app.service.plain_client().send(&create_request(&key, &forwarded, body.as_bytes())).status, 201);
    wait_for("the other client", || app.database.count("key_uses WHERE last_address = '203.0.113.9'") == 1);
    let facts = ada.get(&format!("/settings/api-keys/{id}/revoke")).text();
    for shown in [page(id), facts] {
        assert!(
            shown.contains("<dt>Last used from</dt><dd>203.0.113.9</dd><dt>Software</dt><dd>Booking/7</dd>"),
            "{shown}"
        );
    }
    assert!(!page(idle).contains("Last used from"));

    assert_eq!(app.database.count("key_uses WHERE last_program = 'Refused/1'"), 0);

    app.clinic.revoke(id);
    let thief = [("User-Agent", "Thief/1"), ("X-Request-Id", "stolen")];
    assert_eq!(app.service.create_with(&key, &thief, body.as_bytes()).status, 401);
    wait_for("the refusal", || app.database.count("key_refusals WHERE request_id = 'stolen'") == 1);
    assert_eq!(app.database.count("key_uses WHERE last_program = 'Booking/7'"), 1, "no use");
}

#[test]
fn a_client_that_says_nothing_too_much_or_a_key_does_no_harm() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, key) = app.clinic.key();
    let body = patient().to_string();
    let send = |user_agent: &str| app.service.create_with(&key, &[("User-Agent", user_agent)], body.as_bytes()).status;
    assert_eq!(send(&format!("Booking/1 {}", key.expose())), 201);
    wait_for("a part", || app.database.count("key_uses WHERE last_program = 'Booking/1 intake'") == 1);
    assert_eq!(app.database.tables_that_hold(&key.expose()[12..42]), [""; 0]);
    assert_eq!(send(&"x".repeat(4_000)), 201);
    wait_for("the beginning", || app.database.count("key_uses WHERE last_program = repeat('x', 80)") == 1);
    assert_eq!(app.service.create(&key, &patient()).status, 201);
    wait_for("none", || app.database.count("key_uses WHERE last_program IS NULL AND last_address = '127.0.0.1'") == 1);
    let page = ada.get(&format!("/settings/api-keys/{id}")).text();
    assert!(page.contains("<dt>Last used from</dt><dd>127.0.0.1</dd>"), "{page}");
}
