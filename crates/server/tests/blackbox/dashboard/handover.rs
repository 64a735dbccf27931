//! The page of a new key leads a person who does not program: copy the key, pass it on, see the first patient arrive.

use diesel::connection::SimpleConnection;
use intake_test_support::{Browser, patient};
use serde_json::json;

use crate::fixtures::{TestApp, between, create_key, in_each_browser};
use crate::patient_with;

#[test]
fn the_message_for_the_vendor_says_everything_but_the_key() {
    in_each_browser(|app, browser| {
        let key = create_key(browser, "Front desk");
        let message = browser.run("return document.getElementById('message').textContent");
        let message = message.as_str().unwrap().replace('\u{a0}', " ");
        let expected = [
            &format!("Address: {}\n", app.url("/api/v1")),
            &format!("Instructions for developers: {}\n", app.url("/docs")),
            &format!("Key: ends in {}.", key.hint()),
            "Works until: the end of ",
            "Contact: Ada, ada@clinic.example",
        ];
        for expected in expected {
            assert!(message.contains(expected), "{expected}: {message}");
        }
        assert!(!message.contains(key.expose()));
    });
}

#[test]
fn a_second_key_with_the_same_name_is_created_and_the_page_names_the_first() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let create = || {
        let id = between(&ada.get("/settings/api-keys/new").text(), "name=\"id\" value=\"", "\"");
        ada.post("/settings/api-keys", &format!("id={id}&name=HotDoc&lasts=never")).text()
    };
    let named = "Another working key has this name: <a href=\"/settings/api-keys/";
    assert!(!create().contains(named));
    let first = app.database.texts("SELECT id || '\">…' || hint FROM api_keys").remove(0);
    let second = create();
    assert!(second.contains(&format!("{named}{first}</a>")), "{second}");
    app.database.connect().batch_execute("UPDATE api_keys SET paused_at = now()").unwrap();
    assert!(!create().contains(named), "paused keys are out of use");
}

#[test]
fn the_copied_message_is_the_one_that_is_shown() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    create_key(&browser, "Front desk");
    let _ = browser.run(
        "Object.defineProperty(navigator.clipboard, 'writeText', { value: async (text) => { window.copied = text } })",
    );
    browser.press("Copy message for the vendor");
    browser.wait_for("Copied.");
    let is_shown = "const shown = document.getElementById('message').textContent;
        return !window.copied.includes('\\u00a0') && window.copied === shown.replaceAll('\\u00a0', ' ')";
    assert_eq!(browser.run(is_shown), json!(true));
}

#[test]
fn the_card_of_the_first_request_is_in_sight_and_tells_refused_from_accepted() {
    for browser in Browser::each() {
        let app = TestApp::start();
        app.join(&browser, "Ada", "ada@clinic.example");
        let key = create_key(&browser, "Front desk");
        let card = |what: &str| browser.run(&format!("return document.querySelector('[data-first-use]').{what}"));
        assert_eq!(card("dataset.outcome"), json!(null));
        assert_eq!(app.service.create(&key, &patient_with("phoneNumber", "0412 345 678")).status, 422);
        browser.wait_for("A request was refused: Phone number. Tell the vendor.");
        assert_eq!(card("dataset.outcome"), "refused");
        assert_eq!(app.service.create(&key, &patient()).status, 201);
        browser.wait_for("A request was accepted. It created a patient.");
        assert_eq!(card("dataset.outcome"), "accepted");
        let is_before_code = "compareDocumentPosition(document.querySelector('pre code')) & 4";
        assert_eq!(card(is_before_code), 4, "the code comes after it");
        let is_folded = "return document.querySelector('details').open";
        assert_eq!(browser.run(is_folded), json!(false));
        assert!(!browser.text().contains("INTAKE_URL"));
    }
}
