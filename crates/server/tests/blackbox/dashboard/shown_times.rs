//! Moments are shown in the language of the page and the time zone of the organisation; recovery codes can be kept.

use diesel::connection::SimpleConnection;
use intake_test_support::{Browser, wait_for};
use serde_json::json;

use crate::fixtures::{TestApp, create_key, in_each_browser};

/// The members of the app's clinic are in Sydney, wherever their browsers are.
fn in_sydney(app: &TestApp) {
    app.database.connect().batch_execute("UPDATE organisations SET time_zone = 'Australia/Sydney'").unwrap();
}

#[test]
fn times_are_those_of_the_organisation_wherever_the_browser_is_and_the_zone_is_named_once() {
    in_each_browser(|app, browser| {
        create_key(browser, "Front desk");
        in_sydney(app);
        let at = "UPDATE audit_entries SET at = '2026-01-31 13:30 UTC'";
        app.database.connect().batch_execute(at).unwrap();
        browser.open(&app.url("/settings/activity"));
        browser.wait_for("1 Feb 2026, 00:30");
        assert_eq!(browser.text().matches("Sydney time").count(), 1, "{}", browser.text());
        app.database.connect().batch_execute("UPDATE audit_entries SET at = now()").unwrap();
        browser.reload();
        let shown = "return document.querySelector('td time').textContent";
        wait_for("today", || browser.run(shown).as_str().is_some_and(|text| text.starts_with("today, ")));
    });
}

#[test]
fn how_long_ago_a_key_was_used_is_said_and_when_it_was_on_hover() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    browser.tell("Emulation.setTimezoneOverride", &json!({ "timezoneId": "America/New_York" }));
    app.join(&browser, "Ada", "ada@clinic.example");
    let used = format!(
        "UPDATE organisations SET time_zone = 'Australia/Adelaide';
         INSERT INTO key_uses (organisation_id, key_id, last_used_at)
             VALUES ('{}', '{}', '2026-02-28 14:00 UTC')",
        app.clinic.organisation,
        app.clinic.key().0
    );
    app.database.connect().batch_execute(&used).unwrap();
    browser.open(&app.url("/settings/api-keys"));
    let shown = "const time = document.querySelector('time[data-relative]'); return [time.title, time.textContent]";
    wait_for("when it was used", || {
        let shown = browser.run(shown);
        shown[0] == "1 Mar 2026, 00:30" && shown[1].as_str().is_some_and(|text| text.ends_with(" ago"))
    });
}

#[test]
fn the_end_of_a_key_is_the_end_of_its_last_day_in_the_zone() {
    let app = TestApp::start();
    let ada = app.member("grace@clinic.example");
    let (key, _) = app.clinic.key();
    let page = format!("/settings/api-keys/{key}");
    in_sydney(&app);
    for (end, shown, listed) in [
        ("2027-11-23 13:00", "the end of 23 November 2027", "23 Nov 2027"),
        ("2028-06-30 14:00", "the end of 30 June 2028", "30 Jun 2028"),
        ("2027-11-24 00:00", "24 Nov 2027, 11:00", "24 Nov 2027"),
    ] {
        let ends = format!("UPDATE api_keys SET expires_at = '{end} UTC' WHERE id = '{key}'");
        app.database.connect().batch_execute(&ends).unwrap();
        let text = ada.get(&page).text();
        assert!(text.contains(&format!(">{shown}</time>")), "{text}");
        assert!(ada.get("/settings/api-keys").text().contains(&format!(">{listed}</time>")), "{listed}");
    }
}

#[test]
fn recovery_codes_can_be_downloaded_and_printed_with_and_without_scripts() {
    in_each_browser(|app, browser| {
        let folder = tempfile::tempdir().unwrap();
        browser.download_into(folder.path());
        app.turn_on_second_factor(browser, || ());
        let codes = browser.value("Recovery codes");
        assert_eq!(codes.lines().count(), 10);
        browser.press("Download");
        let file = folder.path().join("intake-recovery-codes.txt");
        wait_for("the file", || {
            std::fs::read_to_string(&file).is_ok_and(|text| {
                let expected =
                    "Recovery codes for localhost\r\nAccount: ada@clinic.example\r\nOrganisation: Test Clinic\r\n\r\n";
                text.strip_prefix(expected).is_some_and(|text| text.trim_end().replace("\r\n", "\n") == codes)
            })
        });
        assert!(browser.text().contains("Your recovery codes"), "the page is still there");

        browser.emulate("print", &[]);
        let printed = "const codes = document.getElementById('codes');
             const shown = (one) => one.getClientRects().length > 0;
             return [codes.scrollHeight <= codes.clientHeight + 1, [...document.querySelectorAll('button, .button, nav')].some(shown)]";
        wait_for("all of the codes, and no buttons", || browser.run(printed) == json!([true, false]));
    });
}

#[test]
fn a_list_is_printed_as_a_table_that_says_who_printed_it() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    create_key(&browser, "Front desk");
    browser.on_a_screen(718);
    for path in ["/settings/api-keys", "/settings/activity", "/settings/members"] {
        browser.open(&app.url(path));
        browser.emulate("print", &[]);
        let _ = browser.run("dispatchEvent(new Event('beforeprint'))");
        let display = browser.run("return getComputedStyle(document.querySelector('tbody tr')).display");
        assert_eq!(display, "table-row", "{path}");
        let text = browser.text();
        assert!(text.contains("Test Clinic · Ada, ada@clinic.example · "), "{path}: {text}");
        for useless in ["Revoke", "First steps", "Invite member"] {
            assert!(!text.contains(useless), "{useless} on {path}: {text}");
        }
        let is_whole =
            "return [...document.querySelectorAll('tbody code')].every((one) => one.getClientRects().length === 1)";
        assert_eq!(browser.run(is_whole), true, "the hint of a key is in one line");
    }
}

#[test]
fn an_entry_on_a_phone_names_its_parts() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    app.join(&browser, "Ada", "ada@clinic.example");
    browser.on_a_screen(360);
    browser.open(&app.url("/settings/activity"));
    let labels = "return [...document.querySelector('tbody tr').cells].map((cell) => getComputedStyle(cell, '::before').content)";
    assert_eq!(browser.run(labels), json!(["\"When: \"", "\"Who: \"", "\"What: \"", "\"IP address: \""]));
}
