//! What is typed counts, or is refused with a reason: no form ignores it, and none loses it when a session ends in the
//! middle of it.

use diesel::connection::SimpleConnection;
use intake_edge as edge;
use intake_test_support::{Browser, request};

use crate::fixtures::{Member, PASSWORD, TestApp, choose_action, create_key, in_each_browser, unconfirm};

const ID: &str = "018f0000-0000-7000-8000-000000000000";

#[test]
fn a_date_beside_another_choice_is_refused_and_kept() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let create = |lasts: &str, expires: &str| {
        ada.post("/settings/api-keys", &format!("id={ID}&name=Desk&lasts={lasts}&expires={expires}"))
    };
    for lasts in ["365", "never"] {
        let refused = create(lasts, "2099-12-24");
        let page = refused.text();
        assert!(refused.status == 422 && page.contains("Choose “On a date” to use this date, or clear it."), "{page}");
        assert!(page.contains("value=\"2099-12-24\""), "{page}");
    }
    let odd = create("date", "24.12.2099").text();
    assert!(
        odd.contains("Enter a date, for example 31/12/2026.") && odd.contains("type=\"text\" value=\"24.12.2099\"")
    );
    assert_eq!(app.database.count("api_keys"), 0);
    assert_eq!(create("date", "24/12/2099").status, 200);
    assert_eq!(app.database.count("api_keys WHERE expires_at = '2099-12-25 00:00 UTC'"), 1);
}

#[test]
fn a_refused_form_says_so_in_its_title_and_lists_several_faults_first() {
    in_each_browser(|app, browser| {
        browser.open(&app.url("/settings/api-keys/new"));
        assert_eq!(browser.run("return document.title"), "Create API key · intake");
        let _ = browser.run("document.querySelector('main form').noValidate = true");
        browser.fill("Name", " ");
        let _ = browser.run("document.getElementById('networks').value = 'my office'");
        browser.press("Create key");
        browser.wait_for("Check 2 fields:");
        assert_eq!(browser.run("return document.title"), "Error: Create API key · intake");
        browser.wait_until("return document.activeElement.role", "alert");
        browser.press("The name must not be blank.");
        browser.wait_for_focus("name");
        browser.fill("Name", "Desk");
        browser.press("Create key");
        browser.wait_for("Check the networks");
        assert!(!browser.text().contains("Check 2 fields"), "one fault is beside its field");
        browser.wait_for_focus("networks");
        assert_eq!(browser.run("return document.title"), "Error: Create API key · intake");
    });
}

#[test]
fn a_typed_date_is_chosen_by_typing_it() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    browser.press("Create API key");
    browser.fill("Name", "Front desk");
    let is_shown = || browser.run("return document.getElementById('expires').getClientRects().length > 0");
    let choose = |value: &str| {
        let _ = browser.run(&format!(
            "const lasts = document.getElementById('lasts'); lasts.value = '{value}'; lasts.dispatchEvent(new Event('change'))"
        ));
    };
    assert_eq!(is_shown(), false, "one control at a time");
    choose("date");
    assert_eq!(is_shown(), true);
    choose("30");
    assert_eq!(is_shown(), false);
    choose("date");
    let _ = browser.run("document.getElementById('lasts').value = '365'");
    let _ = browser.run("document.getElementById('expires').focus()");
    // The same in any order of day and month.
    let year = edge::now().year() + 1;
    browser.keys(&format!("1212{year}"));
    assert_eq!(browser.run("return document.getElementById('lasts').value"), "date");
    browser.press("Create key");
    browser.wait_for("won't be shown again");
    assert_eq!(app.database.count("api_keys"), 1);
    assert_eq!(app.database.count(&format!("api_keys WHERE expires_at = '{year}-12-13 00:00 UTC'")), 1);
}

#[test]
fn without_scripts_a_date_can_be_typed_at_once() {
    let Some(browser) = Browser::without_scripts() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    browser.press("Create API key");
    browser.wait_for("(for “On a date”)");
}

#[test]
fn typed_text_survives_the_end_of_a_session() {
    for browser in Browser::each().chain(Browser::without_scripts()) {
        let app = TestApp::start();
        app.join(&browser, "Ada", "ada@clinic.example");
        create_key(&browser, "Front desk");
        browser.press("Done");
        browser.press("Front desk");
        let end_sessions = || app.database.connect().batch_execute("DELETE FROM sessions").unwrap();
        let sign_in = || {
            browser.wait_for("Your session has expired.");
            browser.fill("Email", "ada@clinic.example");
            browser.fill("Password", PASSWORD);
            browser.press("Sign in");
            browser.wait_for("Nothing has been saved yet.");
        };
        browser.wait_for("Requests in the last 30 days");
        choose_action(&browser, "Front desk", "Add note");
        let note = "Call Dana & 中文 \"first\".\n50 % = half";
        browser.fill("Note", note);
        end_sessions();
        browser.press("Save note");
        sign_in();
        assert_eq!(browser.value("Note"), note);
        browser.press("Save note");
        browser.wait_for("Note saved.");
        assert_eq!(app.database.count("api_keys WHERE note LIKE 'Call Dana%half'"), 1);

        browser.open(&app.url("/settings/api-keys/new"));
        browser.fill("Name", "Laboratory");
        end_sessions();
        browser.press("Create key");
        sign_in();
        assert_eq!(browser.value("Name"), "Laboratory");
        browser.reload();
        browser.wait_for("Where the key will be used");
        assert_eq!(browser.value("Name"), "", "it is shown once");
    }
}

#[test]
fn what_was_chosen_is_chosen_again_after_confirming() {
    let app = TestApp::start();
    let mut ada = app.member("ada@clinic.example");
    let _ = Member::join(app.service.client(), &ada.invite_as("olga@clinic.example", "auditor"), "Olga");
    let olga = app.database.texts("SELECT id::text FROM members WHERE email = 'olga@clinic.example'").remove(0);
    let role = format!("/settings/members/{olga}/role");
    for (page, chosen, shown) in [
        ("/settings/policies/time-zone", "zone=Australia/Perth", "<option value=\"Australia/Perth\" selected>"),
        (&role, "role=key-manager", "name=\"role\" value=\"key-manager\" checked"),
    ] {
        unconfirm(&app);
        let interrupted = ada.post(page, chosen);
        let draft = interrupted.all("set-cookie").iter().find(|cookie| cookie.contains("-draft=")).unwrap().to_string();
        assert_eq!(ada.confirm_identity(PASSWORD, "").status, 303);
        let cookies = format!("{}; {}", ada.cookie, draft.split(';').next().unwrap());
        let form = ada.client.send(&request("GET", page, &[("Cookie", &cookies)], b"")).text();
        assert!(form.contains(shown) && form.contains("Nothing has been saved yet."), "{form}");
    }
}

#[test]
fn days_in_the_wrong_order_are_named() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let reversed = ada.get("/settings/activity?from=2026-03-02&until=2026-03-01");
    let page = reversed.text();
    assert!(reversed.status == 422 && page.contains("The first day is after the last one."), "{page}");
    let odd = ada.get("/settings/activity?from=2.3.2026").text();
    assert!(odd.contains("type=\"text\" value=\"2.3.2026\""), "what was typed is kept: {odd}");
    assert_eq!(ada.get("/settings/activity?from=2/3/2026&until=3/3/2026").status, 200);
}
