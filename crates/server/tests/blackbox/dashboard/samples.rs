//! The samples on the page of a new key: each language of the guide has a tab, and the one for curl works as it is.

use std::io::Write;
use std::process::{Command, Stdio};

use intake_test_support::Browser;
use serde_json::json;

use crate::fixtures::{TestApp, between, create_key};

const ARROW_RIGHT: &str = "\u{E014}";

/// Returns what a reader of the page copies.
fn code(page: &str, before: &str) -> String {
    let escaped = between(page, before, "</code>");
    escaped
        .replace("&#34;", "\"")
        .replace("&#39;", "'")
        .replace("&#60;", "<")
        .replace("&#62;", ">")
        .replace("&#38;", "&")
}

#[test]
fn the_sample_of_a_new_key_runs_as_it_is_shown() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let id = between(&ada.get("/settings/api-keys/new").text(), "name=\"id\" value=\"", "\"");
    let page = ada.post("/settings/api-keys", &format!("id={id}&name=Desk")).text();
    let key = between(&page, "id=\"key\" value=\"", "\"");
    let script = format!("{}\n{}", code(&page, "<pre><code>"), code(&page, "<code id=\"sample-code-1\">"));
    let mut shell = Command::new("bash");
    shell.args(["-euc", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    writeln!(shell.stdin.take().unwrap(), "{key}").unwrap();
    let output = shell.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.trim_end().ends_with("\n200"), "{script}\n{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(app.patients(), 0);
}

#[test]
fn the_languages_are_tabs_for_mouse_and_keyboard_with_and_without_scripts() {
    for (browser, has_scripts) in [(Browser::start(), true), (Browser::without_scripts(), false)] {
        let Some(browser) = browser else { return };
        let app = TestApp::start();
        app.join(&browser, "Ada", "ada@clinic.example");
        let _ = create_key(&browser, "Front desk");
        let _ = browser.run("document.querySelector('details > summary').click()");
        let shown = "return [...document.querySelectorAll('.sample')].filter((one) => one.getClientRects().length > 0)
            .map((one) => one.previousElementSibling.textContent)";
        assert_eq!(browser.run(shown), json!(["curl"]));
        if has_scripts {
            browser.press("Copy sample");
            browser.wait_for("Copied.");
            let selected = browser.run("return getSelection().toString()");
            assert!(selected.as_str().unwrap().contains("$INTAKE_URL/patients/validate"), "{selected}");
        }
        let _ = browser.run("document.getElementById('sample-1').focus()");
        browser.keys(ARROW_RIGHT);
        assert_eq!(browser.run(shown), json!(["Python"]));
        assert!(browser.text().contains("def create_patient("));
        let _ = browser.run("document.querySelector('label[for=sample-6]').click()");
        assert_eq!(browser.run(shown), json!(["PHP"]));
    }
}
