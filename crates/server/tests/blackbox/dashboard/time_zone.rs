//! An organisation chooses the time zone in which its members see days and times.

use diesel::connection::SimpleConnection;
use intake_domain::Zone;

use crate::commands::organisations::{done, recorded};
use crate::fixtures::{PASSWORD, TestApp, confirm_identity, in_each_browser};

const PAGE: &str = "/settings/policies/time-zone";

#[test]
fn a_key_works_to_the_end_of_its_last_day_in_the_zone_that_an_administrator_chose() {
    let app = TestApp::start();
    let mut ada = app.member("ada@clinic.example");
    assert!(
        ada.get("/settings/api-keys").text().contains("All times are UTC. <a href=\"/settings/policies/time-zone\">")
    );
    app.database.connect().batch_execute("UPDATE sessions SET confirmed_at = NULL").unwrap();
    assert_eq!((ada.get(PAGE).status, ada.post(PAGE, "zone=Australia/Sydney").status), (303, 303));
    assert_eq!(app.database.count("organisations WHERE time_zone <> 'UTC'"), 0, "confirmed first");
    assert_eq!(ada.confirm_identity(PASSWORD, "").status, 303);
    assert_eq!(ada.post(PAGE, "zone=Australia/Springfield").status, 400);
    let changed = ada.post(PAGE, "zone=Australia/Sydney");
    assert!(ada.follow(&changed).contains("Days and times are now shown in Sydney time."));
    assert_eq!(ada.post(PAGE, "zone=Australia/Sydney").status, 303);
    assert_eq!(recorded(&app, "organisation_zone_changed"), ["Test Clinic: UTC → Australia/Sydney"], "once");
    let page = ada.get("/settings/api-keys").text();
    assert!(page.contains("All times are Sydney time.</footer>"), "{page}");

    let form = "id=018f0000-0000-7000-8000-000000000000&name=Desk&lasts=date&expires=2099-01-31";
    let made = ada.post("/settings/api-keys", form).text();
    assert!(made.contains("Works until: <time datetime=\"2099-01-31T13:00:00.000Z\" data-end>the end of 31 January 2099</time>, Sydney time"));
    assert_eq!(app.database.count("api_keys WHERE expires_at = '2099-01-31 13:00 UTC'"), 1);
}

#[test]
fn an_operator_changes_the_zone_of_an_organisation() {
    let app = TestApp::start();
    let id = app.clinic.organisation.to_string();
    let change = ["organisation", "time-zone", &id, "--zone", "australia/perth", "--as", "Ada"];
    assert_eq!(done(&app, &change)["timeZone"], "Australia/Perth");
    assert_eq!(recorded(&app, "organisation_zone_changed"), ["Test Clinic: UTC → Australia/Perth|Ada"]);
    assert_eq!(done(&app, &["organisation", "list"])[0]["timeZone"], "Australia/Perth");
    let ada = app.member("ada@clinic.example");
    assert!(ada.get("/settings/activity").text().contains("All times are Perth time."));
}

#[test]
fn an_administrator_chooses_the_zone_with_and_without_scripts() {
    in_each_browser(|app, browser| {
        app.database.connect().batch_execute("UPDATE sessions SET confirmed_at = NULL").unwrap();
        browser.open(&app.url("/settings/policies"));
        browser.press("Choose your time zone");
        confirm_identity(browser);
        browser.wait_for("Keys that exist keep their expiry.");
        assert_eq!(browser.value("Time zone"), Zone::default().name());
        let _ = browser.run("document.getElementById('zone').value = 'Australia/Hobart'");
        browser.press("Save time zone");
        browser.wait_for("Days and times are now shown in Hobart time.");
        browser.wait_for("All times are Hobart time.");
    });
}
