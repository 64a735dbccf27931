//! One organisation's members cannot slow the dashboard for another: lists come a page at a time, and work for one
//! organisation uses only a part of the connections.

use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;

use crate::dashboard::pages::{PASSKEY_OF_EACH_MEMBER, fill, id_on_page, routes};
use crate::fixtures::{Member, PASSWORD, TestApp, between, password_field};

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
        let id = between(&form, "name=\"id\" value=\"", "\"");
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
    let clinics = Clinics::start();
    let lock = "LOCK TABLE invitations IN ACCESS EXCLUSIVE MODE";
    clinics.assert_two_wait(lock, "the list of members", || {
        assert_eq!(clinics.ada.get("/settings/members").status, 200);
    });
}

#[test]
fn changes_that_wait_for_each_other_leave_connections_for_other_organisations() {
    let clinics = Clinics::start();
    let (app, ada) = (&clinics.app, &clinics.ada);
    let [(key, _), (paused, _)] = [app.clinic.key(), app.clinic.key()];
    assert_eq!(ada.post(&format!("/settings/api-keys/{paused}/pause"), "").status, 303);
    let id = between(&ada.get("/settings/api-keys/new").text(), "name=\"id\" value=\"", "\"");
    let own = app.database.texts("SELECT id::text FROM members WHERE name = 'Ada'").concat();
    for (path, form) in [
        ("/settings/account/name".to_owned(), "name=Adah".to_owned()),
        ("/settings/api-keys".to_owned(), format!("id={id}&name=k&expires=")),
        (format!("/settings/api-keys/{key}/replace"), format!("id={id}&ends_after=now&lasts=same&expires=")),
        (format!("/settings/api-keys/{key}/rename"), "name=k".to_owned()),
        (format!("/settings/api-keys/{key}/note"), "note=n".to_owned()),
        (format!("/settings/api-keys/{key}/networks"), "networks=::1".to_owned()),
        (format!("/settings/api-keys/{key}/pause"), String::new()),
        (format!("/settings/api-keys/{paused}/resume"), String::new()),
        (format!("/settings/api-keys/{key}/revoke"), String::new()),
        ("/settings/members".to_owned(), "email=e%40e.example&role=administrator".to_owned()),
        ("/settings/members/key-age".to_owned(), "days=9".to_owned()),
        (format!("/settings/members/{own}/role"), "role=administrator".to_owned()),
        ("/settings/account/sessions/end-others".to_owned(), String::new()),
    ] {
        clinics.assert_two_wait(LOCK_OF_ADA, &path, || drop(ada.post(&path, &form)));
    }
}

#[test]
fn no_change_that_waits_holds_up_another_organisation() {
    let clinics = Clinics::start();
    let (app, ada) = (&clinics.app, &clinics.ada);
    let bob = app.member("bob@clinic.example");
    app.database.connect().batch_execute(PASSKEY_OF_EACH_MEMBER).unwrap();
    let (key, _) = app.clinic.key();
    let keys = ada.get("/settings/api-keys").text();
    let tokens =
        [("/invitations", app.invite("jo@clinic.example")), ("/reset", app.reset_password("bob@clinic.example"))];
    let others = ["/settings/members", "/settings/account"].map(|path| ada.get(path).text()).concat();
    let path = |route: &str| match tokens.iter().find(|(start, _)| route.starts_with(start)) {
        Some((_, path)) => path.clone(),
        None => fill(route, |name| if name == "token" { "x".to_owned() } else { id_on_page(name, &keys, &others) }),
    };
    let form = |email: &str| {
        let text = format!("name=k&note=n&networks=::1&days=9&email={email}%40clinic.example&role=auditor&code=0");
        let choice = format!("&id={key}&organisation={}&ends_after=now&lasts=same&expires=", app.clinic.organisation);
        format!("{text}{choice}&{}&new_password=a+long+enough+one", password_field(PASSWORD))
    };
    let of_clinic = format!("organisation_id = '{}'", app.clinic.organisation);
    let members = format!("SELECT member_id FROM memberships WHERE {of_clinic}");
    let mut slow = app.database.connect();
    let lock = format!(
        "BEGIN; SELECT FROM organisations WHERE id = '{}' FOR UPDATE; SELECT FROM memberships WHERE {of_clinic} FOR UPDATE;
         SELECT FROM members WHERE id IN ({members}) FOR UPDATE",
        app.clinic.organisation
    );
    slow.batch_execute(&lock).unwrap();
    std::thread::scope(|threads| {
        for (_, route) in routes().into_iter().filter(|(method, _)| *method == "POST") {
            for (member, form) in [(ada, form("ada")), (&bob, form("bob"))] {
                let path = path(&route);
                threads.spawn(move || drop(member.post(&path, &form)));
            }
        }
        clinics.assert_list_opens();
        slow.batch_execute("COMMIT").unwrap();
    });
}

#[test]
fn a_use_that_waits_to_be_noted_holds_up_nobody_elsewhere() {
    let clinics = Clinics::start();
    let of_ada = "member_id = (SELECT id FROM members WHERE name = 'Ada')";
    let mut slow = clinics.app.database.connect();
    let age = format!("UPDATE sessions SET last_used_at = last_used_at - interval '6 min' WHERE {of_ada}");
    // Apart, or the first would belong to the transaction.
    slow.batch_execute(&age).unwrap();
    slow.batch_execute(&format!("BEGIN; SELECT FROM sessions WHERE {of_ada} FOR UPDATE")).unwrap();
    std::thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| drop(clinics.ada.get("/settings/account")));
        }
        clinics.assert_list_opens();
        slow.batch_execute("COMMIT").unwrap();
    });
}

/// Holds up all changes by Ada.
const LOCK_OF_ADA: &str =
    "SELECT FROM memberships JOIN members ON members.id = member_id WHERE email LIKE 'ada@%' FOR UPDATE";

/// Two organisations with a member each.
struct Clinics {
    app: TestApp,
    ada: Member,
    eve: Member,
}

impl Clinics {
    fn start() -> Self {
        let app = TestApp::start_with(|builder| builder.setting("INTAKE_DEADLINE", "20s"));
        let (ada, elsewhere) = (app.member("ada@clinic.example"), app.other_clinic());
        let eve = app.member_of(&elsewhere, "eve@elsewhere.example");
        Self { app, ada, eve }
    }

    /// Asserts that of eight requests of Ada that wait for a lock, two take a connection, and another organisation's
    /// page is served.
    fn assert_two_wait(&self, lock: &str, what: &str, ask: impl Fn() + Copy + Send) {
        let database = &self.app.database;
        let mut slow = database.connect();
        slow.batch_execute(&format!("BEGIN; {lock}")).unwrap();
        std::thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(ask);
            }
            intake_test_support::wait_for(what, || database.count(WAITING) >= 2);
            // Time for more of it to take connections, if it could.
            std::thread::sleep(Duration::from_millis(300));
            assert!(database.count(WAITING) <= 2, "{what}");
            assert_eq!(self.eve.get("/settings/api-keys").status, 200, "{what}");
            slow.batch_execute("COMMIT").unwrap();
        });
    }

    /// Asserts that another organisation's list of keys opens at once while work waits for locks.
    fn assert_list_opens(&self) {
        let database = &self.app.database;
        intake_test_support::wait_for("work that waits", || database.count(WAITING) >= 2);
        // Time for more of it to take connections, if it could.
        std::thread::sleep(Duration::from_secs(1));
        let mut took = [(); 5].map(|()| {
            let asked = Instant::now();
            assert_eq!(self.eve.get("/settings/api-keys").status, 200);
            asked.elapsed()
        });
        took.sort();
        let waiting = database.texts(&format!("SELECT left(query, 200) FROM {WAITING}"));
        assert!(took[2] < Duration::from_millis(100), "{took:?} beside {waiting:#?}");
    }
}
