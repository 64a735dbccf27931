//! Moments are shown in the language of the page and in the time zone of their reader; recovery codes can be kept.

use diesel::connection::SimpleConnection;
use intake_test_support::{Browser, wait_for};
use serde_json::json;

use crate::fixtures::{TestApp, create_key, in_each_browser};

#[test]
fn a_moment_is_in_the_language_of_the_page_with_its_zone() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    browser.tell("Emulation.setTimezoneOverride", &json!({ "timezoneId": "Australia/Brisbane" }));
    browser.tell("Emulation.setLocaleOverride", &json!({ "locale": "de_DE" }));
    app.join(&browser, "Ada", "ada@clinic.example");
    create_key(&browser, "Front desk");
    let aged = "UPDATE audit_entries SET at = now() - interval '3 days'";
    app.database.connect().batch_execute(aged).unwrap();
    browser.open(&app.url("/settings/activity"));
    let shown = "const time = document.querySelector('td time');
        return [/^\\d{1,2} [A-Z][a-z]+ \\d{4},? \\d{2}:\\d{2}\\s(GMT\\+10|AEST)$/.test(time.textContent.replaceAll('\u{a0}', ' ')), time.textContent, time.dateTime.endsWith('Z')]";
    let shown = browser.run(shown);
    assert!(shown[0] == true && shown[2] == true, "{shown}");
    app.database.connect().batch_execute("UPDATE audit_entries SET at = now()").unwrap();
    browser.reload();
    let is_today = "return /^today,\\s\\d{2}:\\d{2}$/.test(document.querySelector('td time').textContent)";
    wait_for("today", || browser.run(is_today) == true);
}

#[test]
fn the_end_of_a_key_is_the_end_of_its_last_day_where_the_reader_is() {
    let Some(browser) = Browser::start() else { return };
    let app = TestApp::start();
    browser.tell("Emulation.setTimezoneOverride", &json!({ "timezoneId": "Australia/Sydney" }));
    app.join(&browser, "Ada", "ada@clinic.example");
    create_key(&browser, "Front desk");
    for (end, shown) in [
        ("2027-11-23 13:00", "Active, until the end of 23 November 2027, AEDT"),
        ("2028-06-30 14:00", "Active, until the end of 30 June 2028, AEST"),
        ("2027-11-24 00:00", "Active, until 24 Nov 2027, 11:00 AEDT"),
    ] {
        app.database.connect().batch_execute(&format!("UPDATE api_keys SET expires_at = '{end} UTC'")).unwrap();
        browser.open(&app.url("/settings/api-keys"));
        browser.press("Front desk");
        wait_for(shown, || browser.text().replace('\u{a0}', " ").contains(shown));
    }
    app.database.connect().batch_execute("UPDATE api_keys SET expires_at = '2027-11-23 13:00 UTC'").unwrap();
    browser.open(&app.url("/settings/api-keys"));
    wait_for("its last day in the list", || browser.text().contains("23 Nov 2027"));
    app.database.connect().batch_execute("UPDATE api_keys SET expires_at = '2027-11-24 00:00 UTC'").unwrap();
    let ada = app.member("grace@clinic.example");
    let page = ada.get("/settings/api-keys").text();
    assert!(page.contains("<time datetime=\"2027-11-24T00:00:00.000Z\" data-last-day>23 Nov 2027</time>"), "{page}");
}

#[test]
fn a_moment_without_scripts_is_in_the_language_of_the_page_and_in_utc() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let page = ada.get("/settings/activity").text();
    let text = crate::fixtures::between(&page, "<time datetime=\"", "</time>");
    let text = text.split('>').nth(1).unwrap();
    let (date, time) = text.split_once(", ").unwrap();
    assert!(date.split(' ').count() == 3 && time.len() == 9 && time.ends_with(" UTC"), "{text}");
    assert!(page.contains("<html lang=\"en-AU\">"));
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
