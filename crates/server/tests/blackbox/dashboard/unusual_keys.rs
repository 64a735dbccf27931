//! Mails about keys that fell silent, are refused more often than usual or altogether, taken by a real mail server.
//! What happened in weeks is written into the database; each look comes after a start.

use std::thread::sleep;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use intake_domain::Zone;
use intake_test_support::{Clinic, free_port, wait_for};

use crate::api::own_key;
use crate::commands::organisations::done;
use crate::dashboard::mails::{MailServer, with_mails};
use crate::fixtures::{Member, TestApp, first_row_sleeps, service};
use crate::patient_with;

/// The days on which a key that was used until a number of days ago is used in 28.
const DAILY: &str = "true";
const WEEKDAYS: &str = "(n - last) % 7 < 5";
const MONTHLY: &str = "(n - last) % 3 = 0";

/// An organisation with an administrator, on a service without mails until a look.
struct Setup {
    app: TestApp,
    ada: Member,
}

impl Setup {
    fn new() -> Self {
        let app = TestApp::start();
        let ada = app.member("ada@clinic.example");
        Self { app, ada }
    }

    fn sql(&self, sql: &str) {
        self.app.database.connect().batch_execute(sql).unwrap();
    }

    fn key(&self, name: &str) -> String {
        self.key_of(&self.app.clinic, name)
    }

    fn key_of(&self, clinic: &Clinic, name: &str) -> String {
        let id = clinic.key().0.to_string();
        self.sql(&format!(
            "UPDATE api_keys SET name = '{name}', created_at = now() - interval '1 year' WHERE id = '{id}'"
        ));
        id
    }

    /// Uses a key on these days, the last time some hours ago.
    fn uses(&self, id: &str, on: &str, hours: i64, requests: i64) {
        self.sql(&format!(
            "DELETE FROM key_answers WHERE key_id = '{id}';
             INSERT INTO key_answers SELECT organisation_id, id, today - n, today - n, 201, '', {requests}
             FROM api_keys, (SELECT (now() AT TIME ZONE 'UTC')::date AS today,
                (now() AT TIME ZONE 'UTC')::date - ((now() - interval '{hours} hours') AT TIME ZONE 'UTC')::date AS last) AS days,
                generate_series(last, 28) AS n WHERE id = '{id}' AND {on};
             INSERT INTO key_uses (organisation_id, key_id, last_used_at)
             SELECT organisation_id, id, now() - interval '{hours} hours' FROM api_keys WHERE id = '{id}'
             ON CONFLICT (organisation_id, key_id) DO UPDATE SET last_used_at = excluded.last_used_at"
        ));
    }

    fn busy_key(&self, name: &str, on: &str, hours: i64) -> String {
        let id = self.key(name);
        self.uses(&id, on, hours, 20);
        id
    }

    /// Refuses requests with a key: one number of them on each usual day, another today.
    fn refuses(&self, id: &str, status: u16, usually: i64, today: i64) {
        self.sql(&format!(
            "INSERT INTO key_answers SELECT organisation_id, id, day, day, {status}, '',
                CASE n WHEN 0 THEN {today} ELSE {usually} END
             FROM api_keys, generate_series(0, 28) AS n,
                LATERAL (SELECT (now() AT TIME ZONE 'UTC')::date - n AS day) AS days WHERE id = '{id}' AND n <> 1"
        ));
    }

    /// Refuses requests with a key for their phone number, some days ago.
    fn refuses_phones(&self, id: &str, days: i32, count: i64) {
        self.sql(&format!(
            "INSERT INTO key_answers
             SELECT organisation_id, id, day, day, 422, field, {count}
             FROM api_keys, (SELECT (now() AT TIME ZONE 'UTC')::date - {days} AS day) AS days,
                unnest(ARRAY['', 'phoneNumber']) AS field WHERE id = '{id}' AND {count} > 0"
        ));
    }

    /// The last look was some hours ago, and the first one long ago.
    fn looked_before(&self, hours: i64) {
        self.sql(&format!(
            "INSERT INTO key_watches
             SELECT part, now() - interval '60 days', now() - interval '{hours} hours' FROM generate_series(0, 3) AS part
             ON CONFLICT (part) DO UPDATE SET looked_at = excluded.looked_at"
        ));
    }

    /// Looks with a service that begins, and with others at the same moment. The last look was some hours ago.
    fn look_after(&mut self, url: &str, hours: i64, others: usize) {
        self.app.service.stop();
        self.looked_before(hours);
        let start = || with_mails(service(&self.app.database), url).start();
        let others: Vec<_> = std::thread::scope(|threads| {
            let started: Vec<_> = (0..others).map(|_| threads.spawn(start)).collect();
            self.app.service = start();
            started.into_iter().map(|one| one.join().unwrap()).collect()
        });
        self.ada.client = self.app.service.client();
        let looked = "key_watches WHERE looked_at BETWEEN now() - interval '30 minutes' AND now()";
        wait_for("a look", || self.app.database.count(looked) > 0);
        // Time for a mail, and for the looks of the others and, on Citus, at other shards.
        sleep(Duration::from_secs(5));
        drop(others);
    }

    fn look(&mut self, server: &MailServer) {
        self.look_after(&server.url(), 1, 0);
    }
}

fn mails(server: &MailServer, subject: &str) -> Vec<String> {
    let is_it = |mail: &String| mail.lines().any(|line| line.starts_with("Subject: ") && line.contains(subject));
    server.mails().into_iter().filter(is_it).collect()
}

const SILENT: &str = "fallen silent";
const REFUSED: &str = "refused more often than usual";

#[test]
fn busy_keys_that_fell_silent_are_one_mail_and_all_others_none() {
    let Some(server) = MailServer::start() else { return };
    let mut setup = Setup::new();
    let daily = setup.busy_key("Daily", DAILY, 49);
    setup.busy_key("Weekdays over", WEEKDAYS, 4 * 24 + 1);
    setup.busy_key("Monday morning", WEEKDAYS, 3 * 24 + 3);
    setup.busy_key("In use", DAILY, 30);
    let by_hand = setup.busy_key("By hand", DAILY, 49);
    setup.uses(&by_hand, DAILY, 49, 3);
    // A small channel varies: three times its longest pause and a day.
    for (name, hours) in [("Small", 6 * 24 + 1), ("Small and lately", 6 * 24 - 1)] {
        let id = setup.busy_key(name, DAILY, hours);
        setup.uses(&id, DAILY, hours, 2);
    }
    let seldom = setup.busy_key("Seldom", MONTHLY, 10 * 24);
    setup.uses(&seldom, MONTHLY, 10 * 24, 20);
    for (name, sql) in [
        ("Paused", "UPDATE api_keys SET paused_at = now()"),
        ("Revoked", "UPDATE api_keys SET revoked_at = now()"),
        ("Expired", "UPDATE api_keys SET expires_at = now()"),
        ("Resumed", "UPDATE key_uses AS key SET resumed_at = now()"),
    ] {
        let id = setup.busy_key(name, DAILY, 49);
        let column = if name == "Resumed" { "key_id" } else { "id" };
        setup.sql(&format!("{sql} WHERE {column} = '{id}'"));
    }
    let old = setup.busy_key("Replaced", DAILY, 49);
    let new = setup.key("Replacement");
    setup.sql(&format!("UPDATE api_keys SET replaces = '{old}' WHERE id = '{new}'"));
    setup.look(&server);
    let found = mails(&server, SILENT);
    assert_eq!(found.len(), 1, "{:?}", server.mails());
    let mail = &found[0];
    assert!(mail.contains("Subject: 3 API keys of Test Clinic have fallen silent\n"), "{mail}");
    assert!(mail.contains("No request with these API keys of Test Clinic (development) was accepted"), "{mail}");
    assert!(mail.contains("“Daily” (…") && mail.contains(&format!("/settings/api-keys/{daily}\n")), "{mail}");
    assert!(mail.contains("“Weekdays over” (…") && mail.contains(" of 28 days, at most 3 days apart."), "{mail}");
    assert!(mail.contains("“Small” (…"), "{mail}");
    assert_eq!(mail.matches("/settings/api-keys/").count(), 3, "{mail}");
    let page = setup.ada.get(&format!("/settings/api-keys/{daily}")).text();
    assert!(page.contains("Unused for 2 days, longer than usual"), "{page}");
    assert_eq!(setup.ada.get("/settings/api-keys").text().matches(">Silent</span>").count(), 3);
}

#[test]
fn the_list_shows_what_is_unusual_whatever_the_vendor_asks() {
    let Some(server) = MailServer::start() else { return };
    let mut setup = Setup::new();
    setup.busy_key("Front desk", DAILY, 49);
    let (id, key) = setup.app.clinic.key();
    setup.sql("UPDATE api_keys SET created_at = now() - interval '1 year'");
    setup.uses(&id.to_string(), WEEKDAYS, 24, 3);
    setup.refuses_phones(&id.to_string(), 0, 12);
    setup.look(&server);
    let list = |setup: &Setup| setup.ada.get("/settings/api-keys").text();
    let is_shown = |list: &str| list.contains(">Silent</span>") && list.contains(">Only refusals</span>");
    assert!(is_shown(&list(&setup)), "{}", list(&setup));
    assert_eq!(own_key::get(&setup.app.service, &key, "/api/v1/key").status, 200);
    assert_eq!(setup.app.service.create(&key, &patient_with("phoneNumber", "1")).status, 422);
    let counted = format!("key_refusals WHERE key_id = '{id}'");
    wait_for("the refusal, stored with what came before", || setup.app.database.count(&counted) == 1);
    assert!(is_shown(&list(&setup)), "{}", list(&setup));
}

#[test]
fn a_key_whose_replacement_is_refused_is_news_as_if_it_had_none() {
    let Some(server) = MailServer::start() else { return };
    let mut setup = Setup::new();
    for (name, why) in [("Expired", "expires_at"), ("Paused", "paused_at"), ("Revoked", "revoked_at")] {
        let old = setup.busy_key(&format!("{name} replacement"), DAILY, 49);
        let refused = setup.busy_key(&format!("{name} channel"), DAILY, 24);
        setup.refuses_phones(&refused, 0, 20);
        for old in [old, refused] {
            let new = setup.key("New");
            setup.sql(&format!("UPDATE api_keys SET replaces = '{old}', {why} = now() WHERE id = '{new}'"));
        }
    }
    setup.look(&server);
    for subject in
        ["3 API keys of Test Clinic have fallen silent", "Every request with 3 API keys of Test Clinic is refused"]
    {
        assert_eq!(mails(&server, subject).len(), 1, "{subject}: {:?}", server.mails());
    }
}

#[test]
fn a_silence_is_one_mail_however_many_services_look_and_the_next_silence_another() {
    let Some(server) = MailServer::start() else { return };
    let mut setup = Setup::new();
    let id = setup.busy_key("Front desk", DAILY, 49);
    setup.look_after(&server.url(), 1, 2);
    assert_eq!(mails(&server, "API key “Front desk” has fallen silent").len(), 1, "{:?}", server.mails());
    setup.look(&server);
    assert_eq!(mails(&server, SILENT).len(), 1, "not again");
    // Another key of the organisation has to wait for a day since the last mail.
    let back = setup.busy_key("Back office", DAILY, 49);
    setup.look(&server);
    assert_eq!(mails(&server, SILENT).len(), 1, "one mail a day");
    setup.sql("UPDATE key_uses SET silence_announced_at = silence_announced_at - interval '25 hours'");
    setup.look(&server);
    assert_eq!(mails(&server, "API key “Back office” has fallen silent").len(), 1, "{:?}", server.mails());
    // Used again, and silent again.
    setup.uses(&back, DAILY, 1, 20);
    setup.sql("UPDATE key_uses SET silence_announced_at = now() - interval '9 days'");
    setup.uses(&id, DAILY, 60, 20);
    setup.look(&server);
    assert_eq!(mails(&server, "API key “Front desk” has fallen silent").len(), 2, "{:?}", server.mails());
    assert_eq!(mails(&server, SILENT).len(), 3, "{:?}", server.mails());
}

#[test]
fn a_busy_key_that_is_refused_far_more_often_than_usual_is_one_mail_a_week() {
    let Some(server) = MailServer::start() else { return };
    let mut setup = Setup::new();
    for (name, status, usually, today) in [
        ("Few", 422, 0, 49),
        ("As usual", 422, 30, 80),
        ("Broken service", 503, 0, 900),
        ("Was paused", 401, 0, 900),
        ("Rising", 422, 20, 60),
    ] {
        let id = setup.busy_key(name, DAILY, 1);
        setup.refuses(&id, status, usually, today);
        if name == "Was paused" {
            setup.sql(&format!("UPDATE key_uses SET resumed_at = now() - interval '20 hours' WHERE key_id = '{id}'"));
        }
    }
    let new = setup.key("New");
    setup.refuses(&new, 422, 0, 900);
    setup.look_after(&server.url(), 1, 1);
    setup.look(&server);
    let found = mails(&server, REFUSED);
    assert_eq!(found.len(), 1, "{:?}", server.mails());
    assert!(
        found[0].contains("Subject: Requests with API key “Rising” are refused more often than usual\n"),
        "{found:?}"
    );
    assert!(found[0].contains("60 requests refused in one day. Usually: at most 20 a day."), "{found:?}");
    let list = setup.ada.get("/settings/api-keys").text();
    assert_eq!(list.matches(">Often refused</span>").count(), 1, "{list}");
    setup.sql(
        "UPDATE key_uses SET refusals_announced_at = now() - interval '6 days' WHERE refusals_announced_at IS NOT NULL",
    );
    setup.look(&server);
    assert_eq!(mails(&server, REFUSED).len(), 1, "{:?}", server.mails());
    setup.sql(
        "UPDATE key_uses SET refusals_announced_at = now() - interval '8 days' WHERE refusals_announced_at IS NOT NULL",
    );
    setup.look(&server);
    assert_eq!(mails(&server, REFUSED).len(), 2, "{:?}", server.mails());
}

/// In one of the two zones at the ends of the world it is another day than in UTC, whenever the test runs.
#[test]
fn a_refused_day_is_one_of_the_organisation() {
    let Some(server) = MailServer::start() else { return };
    let mut setup = Setup::new();
    let now = intake_edge::now();
    let zone = ["Pacific/Kiritimati", "Pacific/Pago_Pago"].map(|name| name.parse::<Zone>().unwrap());
    let zone = zone.into_iter().find(|zone| zone.day(now) != now.date()).unwrap();
    setup.sql(&format!("UPDATE organisations SET time_zone = '{}'", zone.name()));
    // Both would be lately, or neither, if the days were those of UTC.
    for (name, days) in [("Yesterday", 1), ("The day before", 2)] {
        let id = setup.busy_key(name, DAILY, 1);
        let local_day = zone.day(now) - time::Duration::days(days);
        setup.sql(&format!(
            "INSERT INTO key_answers SELECT organisation_id, id, '{local_day}', '{local_day}', 422, '', 300
             FROM api_keys WHERE id = '{id}'"
        ));
    }
    setup.look(&server);
    assert_eq!(
        mails(&server, "Requests with API key “Yesterday” are refused more often").len(),
        1,
        "{:?}",
        server.mails()
    );
}

#[test]
fn a_small_channel_of_which_every_request_is_refused_is_a_mail_on_the_same_day() {
    let Some(server) = MailServer::start() else { return };
    let mut setup = Setup::new();
    // Twelve patients a day until two days ago, or yesterday, and three a day.
    for (name, hours, usually, refused) in [
        ("Two days", 48, 12, [12, 12]),
        ("One day", 24, 12, [0, 12]),
        ("Three a day", 48, 3, [3, 3]),
        ("One patient again and again", 24, 40, [0, 6]),
        ("Too few", 24, 12, [0, 4]),
    ] {
        let id = setup.key(name);
        setup.uses(&id, DAILY, hours, usually);
        for (days, count) in [1, 0].into_iter().zip(refused) {
            setup.refuses_phones(&id, days, count);
        }
    }
    let in_use = setup.busy_key("In use", DAILY, 1);
    setup.refuses_phones(&in_use, 0, 12);
    let by_hand = setup.key("By hand");
    setup.uses(&by_hand, "(n - last) % 5 = 0", 24, 1);
    setup.refuses_phones(&by_hand, 0, 12);
    setup.look(&server);
    let found = mails(&server, "Every request with 3 API keys of Test Clinic is refused");
    assert_eq!(found.len(), 1, "{:?}", server.mails());
    let mail = &found[0];
    assert!(mail.contains("No patient is received through these API keys of Test Clinic (development)"), "{mail}");
    assert!(mail.contains("24 requests refused, most of them because of Phone number."), "{mail}");
    assert!(mail.contains("12 requests refused") && mail.contains("6 requests refused"), "{mail}");
    assert_eq!(mail.matches("/settings/api-keys/").count(), 3, "{mail}");
    setup.look(&server);
    assert_eq!(server.mails().len(), 1, "neither again, nor as silent: {:?}", server.mails());
    let list = setup.ada.get("/settings/api-keys").text();
    assert_eq!(list.matches("Only refusals</span><span class=\"by\">Phone number</span>").count(), 3, "{list}");
    assert_eq!(list.matches("Often refused").count(), 1, "{list}");
    assert!(list.contains("12 of 13 since yesterday"), "the key that is used by hand: {list}");
    let id = setup.app.database.texts("SELECT id::text FROM api_keys WHERE name = 'One day'").remove(0);
    assert!(
        setup
            .ada
            .get(&format!("/settings/api-keys/{id}"))
            .text()
            .contains("No patients are getting through. Missing or wrong: Phone number.")
    );
    setup.uses(&id, DAILY, 0, 12);
    assert!(!setup.ada.get(&format!("/settings/api-keys/{id}")).text().contains("No patients are getting through"));
}

#[test]
fn nothing_is_silent_that_was_refused_or_when_the_service_was_away() {
    let Some(server) = MailServer::start() else { return };
    let mut setup = Setup::new();
    setup.busy_key("Front desk", DAILY, 60);
    let clinic = setup.app.clinic.organisation.to_string();
    // Neither after a break, nor after a clock that was ahead was set back.
    for hours in [5, -5] {
        setup.look_after(&server.url(), hours, 0);
        assert_eq!(setup.app.database.count("key_watches WHERE since > now() - interval '1 minute'"), 1, "{hours}");
    }
    setup.sql("UPDATE key_watches SET since = now() - interval '60 days'");
    done(&setup.app, &["organisation", "suspend", &clinic]);
    setup.look(&server);
    done(&setup.app, &["organisation", "resume", &clinic]);
    assert!(setup.app.database.count("key_uses WHERE resumed_at > now() - interval '1 minute'") > 0);
    setup.look(&server);
    assert_eq!(mails(&server, SILENT), [""; 0]);
    // Paused and resumed on the page.
    setup.sql("UPDATE key_uses SET resumed_at = NULL");
    let id = setup.app.database.texts("SELECT id::text FROM api_keys WHERE name = 'Front desk'").remove(0);
    assert_eq!(setup.ada.post(&format!("/settings/api-keys/{id}/pause"), "").status, 303);
    assert_eq!(setup.ada.post(&format!("/settings/api-keys/{id}/resume"), "").status, 303);
    assert_eq!(setup.app.database.count("key_uses WHERE resumed_at > now() - interval '1 minute'"), 1);
    setup.look(&server);
    assert_eq!(mails(&server, SILENT), [""; 0]);
    setup.sql("UPDATE key_uses SET resumed_at = now() - interval '49 hours'");
    setup.look(&server);
    assert_eq!(mails(&server, SILENT).len(), 1, "{:?}", server.mails());
}

#[test]
fn a_closed_organisation_gets_no_mail_and_an_erased_one_neither() {
    let Some(server) = MailServer::start() else { return };
    let mut setup = Setup::new();
    setup.busy_key("Front desk", DAILY, 60);
    let clinic = setup.app.clinic.organisation.to_string();
    done(&setup.app, &["organisation", "close", &clinic]);
    setup.look(&server);
    done(&setup.app, &["organisation", "erase", &clinic]);
    setup.look(&server);
    assert_eq!(server.mails(), [""; 0]);
    assert_eq!(setup.app.database.count("key_uses WHERE silence_announced_at IS NOT NULL"), 0);
}

#[test]
fn where_no_organisation_sends_anything_the_service_may_be_out_of_reach() {
    let Some(server) = MailServer::start() else { return };
    let mut setup = Setup::new();
    setup.busy_key("Front desk", DAILY, 60);
    let other = setup.app.other_clinic();
    let elsewhere = setup.key_of(&other, "Elsewhere");
    setup.uses(&elsewhere, DAILY, 60, 20);
    setup.look(&server);
    assert_eq!(mails(&server, SILENT), [""; 0]);
    setup.uses(&elsewhere, DAILY, 1, 20);
    setup.look(&server);
    assert_eq!(mails(&server, SILENT).len(), 1, "{:?}", server.mails());
}

#[test]
fn requests_that_did_not_get_through_for_days_are_nobodys_silence() {
    let Some(server) = MailServer::start() else { return };
    let mut setup = Setup::new();
    setup.busy_key("Front desk", DAILY, 75);
    let other = setup.app.other_clinic();
    let elsewhere = setup.key_of(&other, "Elsewhere");
    setup.uses(&elsewhere, DAILY, 74, 20);
    setup.look(&server);
    // The first that gets through again is no reason to tell all others of their silence.
    setup.uses(&elsewhere, DAILY, 0, 20);
    setup.look(&server);
    assert_eq!(mails(&server, SILENT), [""; 0]);
    // It is one if they stay away for longer than usual from then on.
    setup.sql("UPDATE key_watches SET since = now() - interval '49 hours'");
    setup.look(&server);
    assert_eq!(mails(&server, SILENT).len(), 1, "{:?}", server.mails());
}

#[test]
fn many_silent_keys_are_one_mail_that_arrives_when_the_mail_server_is_back() {
    let port = free_port();
    let mut setup = Setup::new();
    for number in 0..23 {
        setup.busy_key(&format!("Room {number:02}"), DAILY, 60);
    }
    setup.look_after(&format!("smtp://127.0.0.1:{port}"), 1, 0);
    wait_for("a line in the log", || {
        setup.app.service.output().contains("an email could not be sent; it is tried again")
    });
    let Some(server) = MailServer::start_at(port) else { return };
    let mail = server.wait_for_mail("ada@clinic.example", "23 API keys of Test Clinic have fallen silent");
    assert!(mail.contains("“Room 19”") && !mail.contains("“Room 20”"), "{mail}");
    assert!(mail.contains("And 3 more: ") && mail.contains("/settings/api-keys?unused=2"), "{mail}");
    assert_eq!(mails(&server, SILENT).len(), 1);
}

/// Keys are marked as told of before their mail is handed in. A statement that takes too long is abandoned and sent
/// again; meanwhile it has marked them.
#[test]
fn a_look_that_is_slow_or_finds_no_members_loses_no_mail() {
    let Some(server) = MailServer::start() else { return };
    let mut setup = Setup::new();
    setup.busy_key("Front desk", DAILY, 49);
    let ends = setup.busy_key("Back office", DAILY, 1);
    setup.sql(&format!("UPDATE api_keys SET expires_at = now() + interval '6 days' WHERE id = '{ends}'"));
    for mark in ["UPDATE OF expiry_announced_at ON api_keys", "UPDATE OF silence_announced_at ON key_uses"] {
        first_row_sleeps(&setup.app.database, mark, 1.5);
    }
    setup.app.service.stop();
    setup.looked_before(1);
    setup.app.service = with_mails(service(&setup.app.database), &server.url()).start();
    setup.sql("ALTER TABLE memberships RENAME TO others");
    wait_for("a look in vain", || setup.app.service.output().contains("could not be found; it is tried again"));
    setup.sql("ALTER TABLE others RENAME TO memberships");
    server.wait_for_mail("ada@clinic.example", "API key “Back office” expires soon");
    server.wait_for_mail("ada@clinic.example", "API key “Front desk” has fallen silent");
    assert_eq!(setup.app.database.count("rows_of_api_keys WHERE last_value > 1"), 1);
    assert_eq!(setup.app.database.count("rows_of_key_uses WHERE last_value > 1"), 1);
}
