//! The page of a key: its name, a note about it, and its last refusals with their request ids, of which a flood leaves
//! no more than the last and in which nothing of a patient is.

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use intake_domain::{ApiKey, Environment, KeyId};
use intake_test_support::{Browser, Clinic, create_request, patient, wait_for};
use serde_json::json;

use crate::fixtures::{Member, TestApp, between, choose_action, create_key, in_each_browser};
use crate::patient_with;

/// The text of each row of a table on the key's page, as a reader without scripts sees it.
pub(crate) fn rows(member: &Member, key: KeyId, table: &str) -> Vec<String> {
    let page = member.get(&format!("/settings/api-keys/{key}")).text();
    let Some((_, table)) = page.split_once(&format!("<table aria-label=\"{table}\">")) else { return vec![] };
    let body = table.split("</table>").next().unwrap().split("<tbody>").nth(1).unwrap();
    let text = |row: &str| {
        let cells = row.split("<td").map(|cell| cell.split_once('>').map_or("", |(_, text)| text));
        let plain =
            |cell: &str| cell.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
        cells.map(plain).collect::<Vec<String>>().join(" | ")
    };
    body.split("<tr>").skip(1).map(text).collect()
}

fn create(app: &TestApp, key: &ApiKey, request_id: &str, body: &[u8]) -> u16 {
    app.service.create_with(key, &[("X-Request-Id", request_id)], body).status
}

#[test]
fn the_keys_page_shows_the_last_refusals_with_reason_and_request_id_and_no_value() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, key) = app.clinic.key();
    let (other, _) = app.clinic.key();
    let plain = create_request(&key, &[("X-Request-Id", "in-clear")], patient().to_string().as_bytes());
    assert_eq!(app.service.plain_client().send(&plain).status, 426);
    wait_for("the first", || app.database.count("key_refusals") == 1);
    assert_eq!(create(&app, &key, "accepted", patient().to_string().as_bytes()), 201);
    assert_eq!(create(&app, &key, "wrong", patient_with("email", "Canary").to_string().as_bytes()), 422);
    assert_eq!(create(&app, &key, "torn", b"{\"firstName\": \"Canary\""), 400);
    assert_eq!(create(&app, &key, "large", "x".repeat(70_000).as_bytes()), 413);
    let headers = [("X-Request-Id", "strict"), ("Prefer", "handling=strict")];
    let unknown = patient_with("canary", "Canary").to_string();
    assert_eq!(app.service.create_with(&key, &headers, unknown.as_bytes()).status, 422);
    let headers = [("X-Request-Id", "text"), ("Content-Type", "text/plain")];
    assert_eq!(app.service.create_with(&key, &headers, b"{}").status, 415);
    let headers = [("X-Request-Id", "ordered"), ("Idempotency-Key", "simulate-503-1")];
    assert_eq!(app.service.create_with(&key, &headers, patient().to_string().as_bytes()).status, 503);
    app.clinic.revoke(id);
    assert_eq!(create(&app, &key, "revoked", patient().to_string().as_bytes()), 401);
    let unknown = app.clinic.unknown_key();
    assert_eq!(create(&app, &unknown, "unknown", b"{}"), 401);
    assert_eq!(app.service.plain_client().send(&create_request(&unknown, &[], b"{}")).status, 426);
    wait_for("the others", || app.database.count("key_refusals") == 8);

    let shown = rows(&ada, id, "Refused requests");
    let expected = [
        "401 | The key was revoked | 127.0.0.1 | revoked",
        "503 | The service was full (simulated) | 127.0.0.1 | ordered",
        "415 | Not UTF-8 JSON | 127.0.0.1 | text",
        "422 | Unknown fields (strict mode) | 127.0.0.1 | strict",
        "413 | Too large | 127.0.0.1 | large",
        "400 | Malformed JSON or header | 127.0.0.1 | torn",
        "422 | Details in the wrong form: Email address | 127.0.0.1 | wrong",
        "426 | Sent unencrypted | 127.0.0.1 | in-clear",
    ];
    for (row, expected) in shown.iter().zip(expected) {
        assert!(row.contains(expected), "{row} is not {expected}");
    }
    assert_eq!(shown.len(), expected.len(), "{shown:?}");
    let reasons = rows(&ada, id, "Refusals").join("\n");
    let page = ada.get(&format!("/settings/api-keys/{id}")).text();
    assert!(
        page.contains("1 accepted") && page.contains("7 refused"),
        "426 is among them, and nothing simulated: {page}"
    );
    assert!(
        page.contains("<th scope=\"row\">Sent unencrypted<span class=\"by\">Others may have read the key"),
        "{reasons}"
    );
    assert!(reasons.contains(" | 426 | 1 | ") && reasons.contains(" | 422 | 2 | Email address (1)"), "{reasons}");
    let message = between(&page, "<pre id=\"message\"", "</pre>");
    for expected in [
        "Test Clinic: requests with the API key for “Test key” (",
        "- Sent unencrypted (426): 1\n",
        "email (1)\n",
        "Instructions for developers: https://",
        "401, request ID revoked\n",
    ] {
        assert!(message.contains(expected), "{expected}: {message}");
    }
    assert!(!message.contains("in-clear"), "the newest five: {message}");
    assert!(!message.contains("today"), "it is read on another day: {message}");
    let rule =
        "- email: an address that an HTML email field accepts, with a dot in the domain, at most 254 characters\n";
    assert!(message.contains(rule), "{message}");
    assert!(!page.contains("Canary") && !page.contains("canary"), "no value, and no name that a caller made up");
    assert_eq!(rows(&ada, other, "Refused requests"), [""; 0]);
    assert_eq!(app.database.tables_that_hold("Canary"), [""; 0]);
}

#[test]
fn what_is_wrong_with_a_key_is_said_once_and_first() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, key) = app.clinic.key();
    let page = || ada.get(&format!("/settings/api-keys/{id}")).text();
    assert!(!page().contains("class=\"alert") && page().contains("Today: 0 accepted, 0 refused"), "{}", page());
    assert_eq!(app.service.create(&key, &patient_with("phoneNumber", "0412")).status, 422);
    assert_eq!(app.service.create(&key, &patient_with("email", "none")).status, 422);
    wait_for("the counts", || app.database.count("key_answers WHERE field = '' AND count = 2") == 1);
    let shown = page();
    let wrong = between(&shown, "<section class=\"alert\" aria-label=\"What is wrong\">", "</section>");
    assert!(wrong.contains("No patients are getting through. Missing or wrong: "), "{wrong}");
    assert!(wrong.contains("Phone number") && wrong.contains("Email address"), "{wrong}");
    assert!(wrong.contains("Copy message for the vendor</button>"), "{wrong}");
    assert_eq!(shown.matches("id=\"message\"").count(), 1, "{shown}");
    assert!(shown.find("<section").unwrap() < shown.find("class=\"card facts\"").unwrap(), "{shown}");
    assert!(shown.contains("Today: 0 accepted, 2 refused"), "{shown}");
    assert!(shown.contains("<dt>Expires</dt><dd>never</dd>"), "{shown}");

    let often = "INSERT INTO key_uses (organisation_id, key_id, last_used_at) SELECT organisation_id, id, now() FROM api_keys;
        INSERT INTO key_answers SELECT organisation_id, key_id, day - 1, day - 1, status, '', 6 FROM key_answers WHERE field = '';
        INSERT INTO key_answers SELECT organisation_id, key_id, day, day, 201, '', 1 FROM key_answers WHERE field = '';
        UPDATE api_keys SET expires_at = date_trunc('day', now(), 'UTC') + interval '2 days'";
    app.database.connect().batch_execute(often).unwrap();
    let shown = page();
    let mild = between(&shown, "<section class=\"alert mild\" aria-label=\"What is wrong\">", "</section>");
    assert!(mild.contains("Refused 8 of 10 since yesterday.") && mild.contains("Copy message"), "{mild}");
    assert!(shown.contains(">Often refused</span></dd>\n<dt>Expires</dt><dd><time"), "no comma: {shown}");
    assert!(shown.contains("Today: 1 accepted, 2 refused"), "{shown}");
}

#[test]
fn a_few_refusals_are_drawn_in_solid_red() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, _) = app.clinic.key();
    let answers = "INSERT INTO key_answers SELECT organisation_id, id, day - age, day - age, status, '', count
        FROM api_keys, (SELECT (now() AT TIME ZONE 'UTC')::date AS day) AS today,
            (VALUES (0, 201, 99), (0, 422, 1), (1, 422, 50)) AS answers (age, status, count)";
    app.database.connect().batch_execute(answers).unwrap();
    let page = ada.get(&format!("/settings/api-keys/{id}")).text();
    let bars: Vec<_> = page.split("<rect class=\"ground\"").skip(29).collect();
    assert!(bars[0].contains("<rect fill=\"url(#stripes)\"") && !bars[0].contains("class=\"refused\""), "{}", bars[0]);
    assert!(bars[1].contains("<rect class=\"refused\" transform=\"translate(291 1)\" y=\"-1\""), "{}", bars[1]);
    assert_eq!(page.matches("url(#stripes)").count(), 1, "nothing is drawn for nothing");
}

#[test]
fn the_meaning_of_a_reason_uses_its_column_and_the_message_is_copied_while_it_is_folded() {
    for browser in Browser::start().into_iter().chain(Browser::firefox()) {
        let app = TestApp::start();
        app.join(&browser, "Ada", "ada@clinic.example");
        let (id, key) = app.clinic.key();
        assert_eq!(app.service.create(&key, &patient_with("phoneNumber", "0412")).status, 422);
        wait_for("the counts", || app.database.count("key_answers WHERE field = ''") == 1);
        browser.open(&app.url(&format!("/settings/api-keys/{id}")));
        browser.on_a_screen(1_280);
        wait_for("the screen", || browser.run("return innerWidth") == 1_280);
        let shown = browser.run(
            "const place = (selector) => document.querySelector(selector).getBoundingClientRect();
             const lines = Math.round(place('[aria-label=Refusals] .by').height / 20);
             const wrong = place('section.alert');
             return [lines, Math.abs(wrong.width - place('.facts').width) < 1, wrong.bottom < place('.facts').top]",
        );
        assert_eq!(shown, json!([1, true, true]), "{browser:?}");
        let _ =
            browser.run("Object.defineProperty(navigator.clipboard, 'writeText', { value: () => Promise.reject() })");
        browser.press("Copy message for the vendor");
        browser.wait_until("return getSelection().toString().includes('are refused.')", true);
    }
}

#[test]
fn a_key_is_found_by_the_id_of_a_request_that_was_refused() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let elsewhere = Clinic::open(&app.database.service, Environment::Development);
    let eve = app.member_of(&elsewhere, "eve@clinic.example");
    let _ = elsewhere.key();
    let ((asked, key), (other, _)) = (app.clinic.key(), app.clinic.key());
    assert_eq!(create(&app, &key, "req-of-a-vendor", b"{"), 400);
    wait_for("the refusal", || app.database.count("key_refusals") == 1);
    let found = |member: &Member, id| member.get(&format!("/settings/api-keys?q={id}")).text();
    let list = found(&ada, "+req-of-a-vendor+");
    assert!(list.contains(&asked.to_string()) && !list.contains(&other.to_string()), "{list}");
    for nothing in [found(&ada, "req-of-a"), found(&eve, "req-of-a-vendor")] {
        assert!(nothing.contains("No keys match your search."), "{nothing}");
    }
}

#[test]
fn a_flood_of_refusals_leaves_the_last_hundred_and_accepted_requests_leave_none() {
    let app = TestApp::start_with(|builder| builder.setting("INTAKE_RATE_LIMIT", "off"));
    let ada = app.member("ada@clinic.example");
    let (id, key) = app.clinic.key();
    for _ in 0..20 {
        assert_eq!(app.service.create(&key, &patient()).status, 201);
    }
    let mut connection = app.service.client().connect();
    for round in 0..3 {
        for number in 0..400 {
            let request_id = format!("flood-{}", round * 400 + number);
            let sent = create_request(&key, &[("X-Request-Id", &request_id)], b"{");
            connection.write(&sent);
            assert_eq!(connection.read().status, 400);
        }
        let last = format!("key_refusals WHERE request_id = 'flood-{}'", round * 400 + 399);
        wait_for("the last of the flood", || app.database.count(&last) == 1);
        assert_eq!(app.database.count("key_refusals"), 100);
    }
    let mut plain = app.service.plain_client().connect();
    for number in 0..300 {
        let request_id = format!("plain-{number}");
        plain.write(&create_request(&key, &[("X-Request-Id", &request_id)], b"{}"));
        assert_eq!(plain.read().status, 426);
    }
    wait_for("the last in clear", || app.database.count("key_refusals WHERE request_id = 'plain-299'") == 1);
    wait_for("all of them to be counted", || app.database.count("key_answers WHERE status = 426 AND count = 300") == 1);
    assert_eq!(app.database.count("key_refusals"), 100);
    assert_eq!(app.database.count("key_answers WHERE status = 400 AND count = 1200"), 1);
    let shown = rows(&ada, id, "Refused requests");
    assert!(shown.len() == 100 && shown[0].contains("plain-299"), "{}", shown[0]);
    assert!(ada.get(&format!("/settings/api-keys/{id}")).body.len() < 100 * 1024);
}

#[test]
fn a_renamed_key_and_its_note_are_in_the_audit_log() {
    in_each_browser(|app, browser| {
        let key = create_key(browser, "Front desk");
        browser.press("Done");
        browser.press("Front desk");
        browser.wait_for("Requests in the last 30 days");
        choose_action(browser, "Front desk", "Rename");
        browser.wait_for("Rename “Front desk”");
        browser.fill("Name", "\u{200B}");
        browser.press("Save name");
        browser.wait_for("The name must not be blank.");
        browser.wait_for_focus("name");
        browser.fill("Name", "Reception <1>");
        browser.press("Save name");
        browser.wait_for("Renamed to “Reception <1>”.");
        choose_action(browser, "Reception <1>", "Add note");
        browser.fill("Note", "Run by Acme.\nCall 5550 first.");
        browser.press("Save note");
        browser.wait_for("Note saved.");
        browser.wait_for("Run by Acme.\nCall 5550 first.");
        choose_action(browser, "Reception <1>", "Change note");
        assert_eq!(browser.value("Note"), "Run by Acme.\nCall 5550 first.");
        browser.press("Save note");
        browser.wait_for("Requests in the last 30 days");
        assert_eq!(app.service.create(&key, &patient()).status, 201, "the same key");
        browser.press("Activity");
        browser.wait_for("renamed the key Front desk → Reception <1>");
        browser.wait_for("changed the note about the key Reception <1>");
        assert_eq!(app.database.count("audit_entries WHERE action = 'key_noted'"), 1, "the same note is no change");
    });
}

/// Everyone who manages keys would read it, and the audit log would keep it for ever.
#[test]
fn an_api_key_is_refused_as_a_name_and_as_a_note() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, key) = app.clinic.key();
    let another = between(&ada.get("/settings/api-keys/new").text(), "name=\"id\" value=\"", "\"");
    for (path, form) in [
        (format!("/settings/api-keys/{id}/rename"), "name=Desk+"),
        (format!("/settings/api-keys/{id}/note"), "note=Ours:+"),
        ("/settings/api-keys".to_owned(), format!("id={another}&name=").as_str()),
        ("/settings/account/name".to_owned(), "name=Ada+"),
    ] {
        let refused = ada.post(&path, &format!("{form}{}", key.expose()));
        assert_eq!(refused.status, 422, "{path}");
        assert!(refused.text().contains("must not contain an API key"), "{path}: {}", refused.text());
    }
    assert_eq!(app.database.tables_that_hold(key.expose()), [""; 0]);
}

#[test]
fn names_and_notes_have_limits_and_a_revoked_key_keeps_its_own() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, _) = app.clinic.key();
    let at = |what: &str| format!("/settings/api-keys/{id}/{what}");
    for (note, message) in [
        ("x".repeat(501), "The note must be at most 500 characters long."),
        ("a%01b".to_owned(), "The note must not contain"),
        ("%E2%80%AEx".to_owned(), "The note must not contain"),
    ] {
        let refused = ada.post(&at("note"), &format!("note={note}"));
        assert!(refused.status == 422 && refused.text().contains(message), "{}", refused.text());
    }
    assert_eq!(ada.post(&at("note"), &format!("note={}", "%0D%0A".repeat(250))).status, 303, "blank is no note");
    assert_eq!(ada.post(&at("note"), &format!("note={}", "%C3%A9".repeat(500))).status, 303);
    assert_eq!(app.database.count("api_keys WHERE length(note) = 500"), 1);
    assert_eq!(ada.post(&at("rename"), &format!("name={}", "x".repeat(101))).status, 422);

    app.clinic.revoke(id);
    for (what, form) in [("rename", "name=Other"), ("note", "note=Other")] {
        for answer in [ada.get(&at(what)), ada.post(&at(what), form)] {
            assert_eq!(answer.status, 303, "{what}");
            let page = ada.follow(&answer);
            assert!(page.contains("has been revoked, so it can&#39;t be changed."), "{page}");
        }
    }
    let mut service = PgConnection::establish(app.database.service.expose()).unwrap();
    service.batch_execute("UPDATE api_keys SET name = 'Other', note = 'Other'").unwrap();
    assert!(service.batch_execute("UPDATE api_keys SET digest = ''").is_err(), "nothing else can be changed");
    assert_eq!(app.database.count("api_keys WHERE name = 'Other' OR note = 'Other'"), 0);
    assert_eq!(app.database.count("audit_entries WHERE action IN ('key_renamed', 'key_noted')"), 1);
}
