//! One organisation's members cannot slow the dashboard for another: lists come a page at a time, and work for one
//! organisation uses only a part of the connections.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use intake_test_support::Clinic;

use crate::dashboard::pages::{PASSKEY_OF_EACH_MEMBER, fill, id_on_page, routes};
use crate::fixtures::{Member, PASSWORD, TestApp, accept, between, in_time, password_field, time_of};

/// Time for which work waits for a lock, at most.
const DEADLINE: Duration = Duration::from_secs(60);
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
        ("/settings/members/invite".to_owned(), "email=e%40e.example&role=administrator".to_owned()),
        ("/settings/policies/key-age".to_owned(), "days=9".to_owned()),
        (format!("/settings/members/{own}/role"), "role=administrator".to_owned()),
        ("/settings/account/sessions/end-others".to_owned(), String::new()),
    ] {
        clinics.assert_two_wait(LOCK_OF_ADA, &path, || drop(ada.post(&path, &form)));
    }
}

#[test]
fn no_change_that_waits_holds_up_another_organisation() {
    let clinics = Clinics::start();
    let bob = clinics.app.member("bob@clinic.example");
    let changes = Changes::new(&clinics, &clinics.ada, "ada@clinic.example");
    let mut slow = clinics.lock_clinic(true);
    std::thread::scope(|threads| {
        for (member, email) in [(&clinics.ada, "ada"), (&bob, "bob")] {
            for (path, form) in changes.all(email) {
                threads.spawn(move || drop(member.post(&path, &form)));
            }
        }
        clinics.assert_list_opens_beside(2);
        slow.batch_execute("COMMIT").unwrap();
    });
}

/// Their changes wait for any of their organisations, and would take the connections of the one they work in.
#[test]
fn no_change_by_people_of_several_organisations_holds_up_one_of_them() {
    let clinics = Clinics::start();
    let app = &clinics.app;
    let people = ["max", "mia", "moe"].map(|name| {
        let person = app.member_of(&clinics.elsewhere, &format!("{name}@elsewhere.example"));
        let join = format!(
            "INSERT INTO memberships (organisation_id, member_id, role, joined_at)
             SELECT '{}', id, 'administrator', now() FROM members WHERE email LIKE '{name}@%'",
            app.clinic.organisation
        );
        app.database.connect().batch_execute(&join).unwrap();
        (name, person)
    });
    let changes = Changes::new(&clinics, &people[0].1, "max@elsewhere.example");
    let mut slow = clinics.lock_clinic(false);
    std::thread::scope(|threads| {
        for (name, person) in &people {
            for (path, form) in changes.all(name) {
                threads.spawn(move || drop(person.post(&path, &form)));
            }
        }
        clinics.assert_list_opens_beside(1);
        slow.batch_execute("COMMIT").unwrap();
    });
}

#[test]
fn guests_who_wait_to_join_hold_up_no_other_organisation() {
    let clinics = Clinics::start();
    let app = &clinics.app;
    // A guest with an account elsewhere among those without.
    let known = app.invite("eve@elsewhere.example");
    let guests = ["jo", "kim", "lee", "pat"].map(|name| (name, app.invite(&format!("{name}@guest.example"))));
    let mut slow = clinics.lock_clinic(true);
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| drop(accept(&app.service.client(), &known, "Eve")));
        }
        for (name, invitation) in &guests {
            threads.spawn(move || drop(accept(&app.service.client(), invitation, name)));
        }
        clinics.assert_list_opens_beside(1);
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
        clinics.assert_list_opens_beside(2);
        slow.batch_execute("COMMIT").unwrap();
    });
}

/// Holds up all changes by Ada.
const LOCK_OF_ADA: &str =
    "SELECT FROM memberships JOIN members ON members.id = member_id WHERE email LIKE 'ada@%' FOR UPDATE";

/// Two organisations with a member each.
struct Clinics {
    app: TestApp,
    elsewhere: Clinic,
    ada: Member,
    eve: Member,
}

/// Every change that a page of the dashboard can make.
struct Changes {
    paths: Vec<String>,
    /// A key and an organisation, for forms.
    ids: String,
}

impl Changes {
    /// With the ids on this member's pages.
    fn new(clinics: &Clinics, member: &Member, email: &str) -> Self {
        let Clinics { app, elsewhere, .. } = clinics;
        app.database.connect().batch_execute(PASSKEY_OF_EACH_MEMBER).unwrap();
        let [invitation, _] = [&app.clinic, elsewhere].map(|clinic| {
            drop(clinic.key());
            app.invite_into(clinic, "sam@guest.example")
        });
        let tokens = [("/invitations", invitation), ("/reset", app.reset_password(email))];
        let keys = member.get("/settings/api-keys").text();
        let others = ["/settings/members", "/settings/account"].map(|path| member.get(path).text()).concat();
        let id = |name: &str| if name == "token" { "x".to_owned() } else { id_on_page(name, &keys, &others) };
        let path = |route: &str| match tokens.iter().find(|(start, _)| route.starts_with(start)) {
            Some((_, path)) => path.clone(),
            None => fill(route, id),
        };
        let posts = routes().into_iter().filter(|(method, _)| *method == "POST");
        let paths = posts.map(|(_, route)| path(&route)).collect();
        Self { paths, ids: format!("&id={}&organisation={}", id("key"), app.clinic.organisation) }
    }

    /// The paths, each with a form in which all fields have values.
    fn all(&self, name: &str) -> Vec<(String, String)> {
        let text =
            format!("name=k&note=n&networks=::1&days=9&zone=UTC&email={name}%40clinic.example&role=auditor&code=0");
        let choice = format!("{}&ends_after=now&lasts=same&expires=", self.ids);
        let form = format!("{text}{choice}&{}&new_password=a+long+enough+one", password_field(PASSWORD));
        self.paths.iter().map(|path| (path.clone(), form.clone())).collect()
    }
}

impl Clinics {
    fn start() -> Self {
        let app = TestApp::start_with(|builder| builder.setting("INTAKE_DEADLINE", format!("{}s", DEADLINE.as_secs())));
        let (ada, elsewhere) = (app.member("ada@clinic.example"), app.other_clinic());
        let eve = app.member_of(&elsewhere, "eve@elsewhere.example");
        Self { app, elsewhere, ada, eve }
    }

    /// Locks the clinic's rows, and those of its members' accounts if that is wanted, until the transaction ends.
    fn lock_clinic(&self, has_members: bool) -> PgConnection {
        let clinic = self.app.clinic.organisation;
        let mut slow = self.app.database.connect();
        slow.batch_execute(&format!(
            "BEGIN; SELECT FROM organisations WHERE id = '{clinic}' FOR UPDATE;
             SELECT FROM memberships WHERE organisation_id = '{clinic}' FOR UPDATE;
             SELECT FROM members JOIN memberships ON member_id = members.id
                WHERE {has_members} AND organisation_id = '{clinic}' FOR UPDATE OF members"
        ))
        .unwrap();
        slow
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

    /// Asserts that another organisation's list of keys opens at once while this much work waits for locks.
    fn assert_list_opens_beside(&self, waiting: i64) {
        let database = &self.app.database;
        let wait = || intake_test_support::wait_for("work that waits", || database.count(WAITING) >= waiting);
        wait();
        // Time for more of it to take connections, if it could.
        std::thread::sleep(Duration::from_secs(1));
        let median_of = |path: &str| {
            let mut took = [(); 5].map(|()| time_of(|| assert_eq!(self.eve.get(path).status, 200)));
            took.sort();
            // One that waits until all the others have failed would pass for a slow one.
            assert!(took[4] < DEADLINE / 4, "{path}: {took:?}");
            took[2]
        };
        // Beyond what the machine makes of a page without the database.
        in_time(Duration::from_millis(100), || {
            wait();
            let calm = median_of("/docs.md");
            median_of("/settings/api-keys").saturating_sub(calm * 10)
        });
    }
}
