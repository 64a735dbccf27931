//! Whom to call about a key: written when it is made or later, kept by its replacement, and shown where something is
//! wrong.

use diesel::connection::SimpleConnection;
use intake_test_support::wait_for;
use serde_json::{Value, json};

use crate::dashboard::mails::{MailServer, with_mails};
use crate::fixtures::{Member, TestApp, between, demo_key, in_each_browser, service};
use crate::patient_with;

const CONTACT: &str = "Acme <1> Bookings, 02 5550 1234";
const TYPED: &str = "Acme+%3C1%3E+Bookings%2C+02+5550+1234";
const SHOWN: &str = "Acme &#60;1&#62; Bookings, 02 5550 1234";
const LIST: &str = "/settings/api-keys";

/// Makes a key with the contact. Returns its id and the key.
fn create(ada: &Member) -> (String, String) {
    let id = between(&ada.get("/settings/api-keys/new").text(), "name=\"id\" value=\"", "\"");
    let made = ada.post(LIST, &format!("id={id}&name=Desk&contact={TYPED}")).text();
    (id, between(&made, "id=\"key\" value=\"", "\""))
}

#[test]
fn the_vendor_is_named_beside_a_problem_and_before_a_key_ends() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, key) = create(&ada);
    let at = |page: &str| format!("{LIST}/{id}{page}");
    for page in ["", "/pause", "/revoke", "/replace"] {
        assert!(ada.get(&at(page)).text().contains(&format!("<dd>{SHOWN}")), "{page}");
    }
    assert!(!ada.get(LIST).text().contains("Acme"), "nothing is wrong");
    assert_eq!(app.service.create(&demo_key(&key), &patient_with("phoneNumber", "0412")).status, 422);
    wait_for("the refusal", || ada.get(LIST).text().contains(&format!(">Ask {SHOWN}</span>")));
    assert!(ada.get(&at("")).text().contains(&format!("Call: {SHOWN}</span>")));
}

#[test]
fn a_replacement_keeps_the_contact_and_the_record_says_who_changed_it() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, _) = create(&ada);
    let replacing = format!("{LIST}/{id}/replace");
    let new = between(&ada.get(&replacing).text(), "name=\"id\" value=\"", "\"");
    assert_eq!(ada.post(&replacing, &format!("id={new}&ends_after=24h&lasts=never")).status, 200);
    let writing = format!("{LIST}/{new}/contact");
    assert!(ada.get(&writing).text().contains(&format!("value=\"{SHOWN}\"")));
    let changed = "audit_entries WHERE action = 'key_contact_changed' AND actor = 'Ada' AND subject = 'Desk'";
    for (typed, message, entries) in
        [(TYPED, "Nothing was changed.", 0), ("Zo%C3%AB", "Vendor contact saved.", 1), ("+", "contact saved.", 2)]
    {
        let answer = ada.post(&writing, &format!("contact={typed}"));
        assert!(ada.follow(&answer).contains(message), "{typed}");
        assert_eq!(app.database.count(changed), entries, "{typed}");
    }
    assert_eq!(app.database.texts("SELECT coalesce(contact, 'none') FROM api_keys ORDER BY id"), [CONTACT, "none"]);
    assert!(ada.get("/settings/activity").text().contains("changed the vendor contact of the key"));
}

#[test]
fn a_contact_has_limits_and_is_no_key() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let (id, key) = app.clinic.key();
    let another = between(&ada.get("/settings/api-keys/new").text(), "name=\"id\" value=\"", "\"");
    let key_in_it = format!("Acme+{}", key.expose());
    for (typed, message) in [
        ("x".repeat(151).as_str(), "The contact must be at most 150 characters long."),
        ("a%0Ab", "The contact must not contain control characters"),
        (&key_in_it, "The contact must not contain an API key"),
    ] {
        for (path, form) in
            [(format!("{LIST}/{id}/contact"), String::new()), (LIST.to_owned(), format!("id={another}&name=Desk&"))]
        {
            let refused = ada.post(&path, &format!("{form}contact={typed}"));
            assert!(refused.status == 422 && refused.text().contains(message), "{path}: {}", refused.text());
        }
    }
    app.clinic.revoke(id);
    let refused = ada.post(&format!("{LIST}/{id}/contact"), "contact=Acme");
    assert!(ada.follow(&refused).contains("has been revoked, so it can&#39;t be changed."));
    assert_eq!(app.database.count("api_keys WHERE contact IS NOT NULL"), 0);
}

#[test]
fn mails_about_a_key_name_the_vendor_without_a_link() {
    let Some(server) = MailServer::start() else { return };
    let mut app = TestApp::start_with(|builder| with_mails(builder, &server.url()));
    let ada = app.member("ada@clinic.example");
    drop(app.member("grace@clinic.example"));
    let (id, _) = app.clinic.key();
    let contact = "Acme%2C+02+5550+1234%2C+https%3A%2F%2Fevil.example";
    assert_eq!(ada.post(&format!("{LIST}/{id}/contact"), &format!("contact={contact}")).status, 303);
    let soon = format!(
        "UPDATE api_keys SET created_at = now() - interval '1 year', expires_at = now() + interval '3 days' WHERE id = '{id}'"
    );
    app.database.connect().batch_execute(&soon).unwrap();
    assert_eq!(ada.post(&format!("{LIST}/{id}/pause"), "").status, 303);
    assert_eq!(ada.post(&format!("{LIST}/{id}/resume"), "").status, 303);
    let again = service(&app.database);
    let _again = with_mails(again, &server.url()).start();
    let vendor = "\nVendor contact: Acme, 02 5550 1234, https   evil. example\n";
    let mail = server.wait_for_mail("ada@clinic.example", "API key “Test key” expires soon");
    assert!(mail.contains(vendor), "{mail}");
    app.service.stop();
    let mail = server.wait_for_mail("grace@clinic.example", "API keys of Test Clinic were changed");
    assert_eq!(mail.matches(vendor).count(), 2, "{mail}");
}

#[test]
fn an_operator_shows_and_sets_the_contact_by_command() {
    let app = TestApp::start();
    let (id, _) = app.clinic.key();
    let (id, organisation) = (id.to_string(), app.clinic.organisation.to_string());
    let command = |arguments: &[&str]| {
        let all = [&["key"], arguments, &["--json"]].concat();
        let output = all.iter().fold(service(&app.database), |command, argument| command.argument(argument)).run();
        let value = output.status.success().then(|| serde_json::from_slice::<Value>(&output.stdout).unwrap());
        (output.status.code(), value.unwrap_or_default())
    };
    let expected = |contact: Value| (Some(0), json!({ "id": id, "contact": contact }));
    assert_eq!(command(&["contact", &id]), expected(Value::Null));
    assert_eq!(command(&["contact", &id, "--set", CONTACT]), expected(json!(CONTACT)));
    assert_eq!(command(&["contact", &id]), expected(json!(CONTACT)));
    assert_eq!(command(&["list", "--organisation", &organisation]).1[0]["contact"], CONTACT);
    assert_eq!(command(&["contact", &id, "--set", ""]), expected(Value::Null));
    assert!(command(&["list", "--organisation", &organisation]).1[0].get("contact").is_none());
    assert_eq!(app.database.count("audit_entries WHERE action = 'key_contact_changed'"), 2);
    assert_eq!(command(&["contact", &id, "--set", "a\nb"]).0, Some(2));
    let made = command(&["create", "--organisation", &organisation, "--name", "Web", "--contact", "Web Co"]).1;
    assert_eq!(command(&["contact", made["id"].as_str().unwrap()]).1["contact"], "Web Co");
    app.clinic.revoke(id.parse().unwrap());
    assert_eq!(command(&["contact", &id, "--set", "Acme"]).0, Some(1));
}

#[test]
fn a_person_writes_down_whom_to_call() {
    in_each_browser(|app, browser| {
        browser.open(&app.url("/settings/api-keys/new"));
        browser.fill("Name", "Front desk");
        browser.fill("Vendor contact", "Acme Bookings");
        browser.press("Create key");
        browser.wait_for("Key created: Front desk");
        browser.press("Done");
        browser.press("Front desk");
        browser.press("Change vendor contact");
        assert_eq!(browser.value("Vendor contact"), "Acme Bookings");
        browser.fill("Vendor contact", "Acme Bookings, 02 5550 1234");
        browser.press("Save contact");
        browser.wait_for("Vendor contact saved.");
        browser.wait_for("Acme Bookings, 02 5550 1234");
    });
}
