//! An organisation chooses the time zone in which its members see days and times.

use diesel::connection::SimpleConnection;
use intake_domain::{Zone, day};
use intake_edge as edge;
use intake_test_support::{patient, wait_for};
use serde_json::json;
use time::Date;

use crate::api::own_key;
use crate::commands::organisations::{done, recorded};
use crate::dashboard::key_page::rows;
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

/// In one of the two zones at the ends of the world it is another day than in UTC, whenever the test runs.
#[test]
fn charts_count_by_the_days_of_the_organisation_and_a_counted_day_stays_when_the_zone_is_changed() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let zone = ["Pacific/Kiritimati", "Pacific/Pago_Pago"].map(|name| name.parse::<Zone>().unwrap());
    let zone = zone.into_iter().find(|zone| zone.day(edge::now()) != edge::now().date()).unwrap();
    assert_eq!(ada.post(PAGE, &format!("zone={}", zone.name())).status, 303);
    let (id, key) = app.clinic.key();
    // Of fewer, the quality has no count.
    (0..5).for_each(|_| assert_eq!(app.service.create(&key, &patient()).status, 201));
    let local_day = zone.day(edge::now());
    let counted =
        format!("key_answers WHERE local_day = '{local_day}' AND day <> local_day AND field = '' AND count = 5");
    wait_for("the count", || app.database.count(&counted) == 1);
    let in_words = |day: Date| {
        let [weekday, month] = [day.weekday().to_string(), day.month().to_string()].map(|name| name[..3].to_owned());
        format!("{weekday} {} {month} {}", day.day(), day.year())
    };
    let used_on = || {
        let page = ada.get(&format!("/settings/api-keys/{id}")).text();
        assert!(!page.contains("UTC here"), "{page}");
        let titles = page.split("<title>").map(|rest| rest.split("</title>").next().unwrap());
        let bars = titles.filter(|bar| bar.contains(": 5 accepted, 0 refused"));
        let days: Vec<_> = bars.map(|bar| bar.split(':').next().unwrap().to_owned()).collect();
        assert_eq!(rows(&ada, id, "Requests by day").iter().filter(|row| row.contains("5 | 0")).count(), days.len());
        days
    };
    assert_eq!(used_on(), [in_words(local_day)]);
    assert!(ada.get("/settings/api-keys").text().contains("5 accepted, 0 refused"));
    assert!(ada.get("/settings/api-keys/channels").text().contains("<strong>5</strong>"));
    let quality = own_key::get(&app.service, &key, "/api/v1/key/quality").json();
    assert_eq!(quality["data"], json!([{ "date": day(local_day), "mark": "no-address", "count": 5 }]));
    assert_eq!(ada.post(PAGE, "zone=UTC").status, 303);
    assert_eq!(used_on(), [in_words(local_day.min(edge::now().date()))]);
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
