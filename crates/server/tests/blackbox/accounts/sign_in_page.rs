//! The pages for signing in on any device: what a person types can be seen, and a phone shows the right keyboard.

use intake_test_support::{Browser, request};
use serde_json::json;

use crate::fixtures::{PASSWORD, TestApp, between};

#[test]
fn a_password_can_be_shown_and_is_hidden_when_it_is_sent() {
    for browser in Browser::each() {
        let app = TestApp::start();
        drop(app.member("ada@clinic.example"));
        browser.open(&app.url("/sign-in"));
        let kind = || browser.run("return document.getElementById('password').type");
        browser.fill("Email", "ada@clinic.example");
        browser.fill("Password", PASSWORD);
        assert_eq!(kind(), json!("password"));
        browser.press("Show password");
        assert_eq!((kind(), browser.value("Password")), (json!("text"), PASSWORD.to_owned()));
        browser.press("Hide password");
        assert_eq!(kind(), json!("password"));
        browser.press("Show password");
        let _ = browser.run("document.forms[0].addEventListener('submit', (event) => event.preventDefault())");
        browser.press("Sign in");
        assert_eq!(kind(), json!("password"));
    }
}

#[test]
fn without_scripts_no_button_is_there_that_would_do_nothing() {
    let Some(browser) = Browser::without_scripts() else { return };
    let app = TestApp::start();
    for path in ["/sign-in".to_owned(), app.invite("ada@clinic.example")] {
        browser.open(&app.url(&path));
        browser.fill("Password", PASSWORD);
        assert!(!browser.has("Show password"), "{path}");
    }
}

#[test]
fn a_phone_shows_the_keyboard_that_a_code_needs() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let email = app.service.client().send(&request("GET", "/sign-in", &[], b"")).text();
    assert!(between(&email, "<input id=\"email\"", ">").contains("autocomplete=\"username webauthn\""), "{email}");
    ada.turn_on_second_factor();
    crate::fixtures::unconfirm(&app);
    let field = |path: &str| between(&ada.get(path).text(), "<input id=\"code\"", ">");
    let digits = field("/settings/confirm?next=/settings/members");
    assert!(digits.contains("inputmode=\"numeric\" autocomplete=\"one-time-code\""), "{digits}");
    let page = ada.get("/settings/confirm?next=/settings/members").text();
    let link = between(&page, "authenticator app. <a href=\"", "\"").replace("&#38;", "&");
    assert_eq!(link, "/settings/confirm?next=%2Fsettings%2Fmembers&recovery=true");
    let letters = field(&link);
    assert!(!letters.contains("numeric") && !letters.contains("one-time-code"), "{letters}");
    let page = ada.get(&link).text();
    assert!(
        page.contains("<a href=\"/settings/confirm?next=%2Fsettings%2Fmembers\">Use a code from your app</a>"),
        "{page}"
    );
}
