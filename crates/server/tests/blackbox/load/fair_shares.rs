//! One organisation's members cannot slow the dashboard for another: lists come a page at a time, and work for one
//! organisation uses only a part of the connections.

use std::time::Duration;

use diesel::connection::SimpleConnection;

use crate::fixtures::{Member, TestApp};

/// Statements that wait for a lock, but for those of which the service has given up the answer: after a second it
/// sends them again, and on a busy machine that happens before they are counted.
const WAITING: &str = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    AND query_start > clock_timestamp() - interval '0.9 seconds'";

/// Adds keys that the organisation's member made and revoked a while ago.
fn add_revoked_keys(app: &TestApp, count: usize, age: &str) {
    let add = format!(
        "INSERT INTO api_keys (id, organisation_id, name, digest, hint, created_at, created_by, revoked_at)
         SELECT gen_random_uuid(), '{}', 'Old ' || number, sha256(number::text::bytea), 'old' || number % 10,
            now() - interval '{age}' + number * interval '1 ms', 'Ada', now() - interval '{age}'
         FROM generate_series(1, {count}) AS number",
        app.clinic.organisation
    );
    app.database.connect().batch_execute(&add).unwrap();
}

#[test]
fn a_list_of_many_revoked_keys_is_read_a_page_at_a_time() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, _) = app.clinic.key();
    add_revoked_keys(&app, 20_000, "30 days");
    let list = |query: &str| ada.get(&format!("/settings/api-keys{query}")).text();
    let rows = |page: &str| page.matches("scope=\"row\"").count();
    let current = list("");
    assert_eq!(rows(&current), 1, "one key is active");
    assert!(current.contains("(20000 hidden)"), "{current}");
    let all = list("?show=all&page=400");
    assert!(rows(&all) == 50 && all.contains("Page 400 of 401, 20001 keys"), "{all}");
    let last = list("?show=all&page=9999");
    assert!(rows(&last) == 1 && last.contains("Page 401 of 401"), "{last}");
    assert!(list("?show=revoked&sort=name&q=OLD+1999").contains(">Old 1999<"));
    assert_eq!(rows(&list("?show=all&q=50%25")), 0, "a sign of SQL means itself");
    // What the page of the key asks for is that one key.
    assert_eq!(ada.get(&format!("/settings/api-keys/{id}")).status, 200);
}

#[test]
fn new_keys_are_limited_per_day() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let create = || {
        let form = ada.get("/settings/api-keys/new").text();
        let id = crate::fixtures::between(&form, "name=\"id\" value=\"", "\"");
        ada.post("/settings/api-keys", &format!("id={id}&name=One+more"))
    };
    add_revoked_keys(&app, 499, "1 hour");
    let made = create();
    assert!(made.status == 200 && made.text().contains("Your new key"), "{}", made.text());
    let refused = create();
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(refused.text().contains("limit of new keys"), "{}", refused.text());
    // An operator's key does not depend on what members did.
    let (_, key) = app.clinic.key();
    assert_eq!(app.service.create(&key, &intake_test_support::patient()).status, 201);
    app.database.connect().batch_execute("UPDATE api_keys SET created_at = created_at - interval '1 day'").unwrap();
    assert_eq!(create().status, 200, "tomorrow");
}

#[test]
fn slow_work_for_one_organisation_leaves_connections_for_the_others() {
    let lock = "LOCK TABLE invitations IN ACCESS EXCLUSIVE MODE";
    assert_two_wait(lock, |ada, _| {
        assert_eq!(ada.get("/settings/members").status, 200);
    });
}

#[test]
fn changes_that_wait_for_each_other_leave_connections_for_other_organisations() {
    let lock = "SELECT FROM members WHERE name = 'Ada' FOR UPDATE";
    assert_two_wait(lock, |ada, number| {
        assert_eq!(ada.post("/settings/account/name", &format!("name=Ada+{number}")).status, 303);
    });
}

/// Asserts that of eight requests of Ada that wait for a lock, two take a connection, and another organisation's page
/// is served.
fn assert_two_wait(lock: &str, ask: impl Fn(&Member, u8) + Copy + Send) {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_DEADLINE", "20s"));
    let ada = &app.member("ada@clinic.example");
    let elsewhere = app.other_clinic();
    let eve = app.member_of(&elsewhere, "eve@elsewhere.example");
    let mut slow = app.database.connect();
    slow.batch_execute(&format!("BEGIN; {lock}")).unwrap();
    std::thread::scope(|threads| {
        for number in 0..8 {
            threads.spawn(move || ask(ada, number));
        }
        intake_test_support::wait_for("work that waits", || app.database.count(WAITING) >= 2);
        // Time for more of it to take connections, if it could.
        std::thread::sleep(Duration::from_millis(300));
        assert!(app.database.count(WAITING) <= 2);
        assert_eq!(eve.get("/settings/api-keys").status, 200);
        slow.batch_execute("COMMIT").unwrap();
    });
}
