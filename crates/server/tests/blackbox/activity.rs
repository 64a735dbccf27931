//! The audit log on its page and as a file: searched by kind, person and day, read in both directions, harmless in a
//! spreadsheet, and nobody else's.

use diesel::connection::SimpleConnection;
use intake_test_support::{Browser, wait_for};
use serde_json::json;

use crate::fixtures::{Member, TestApp, between};

/// What a page shows as done, entry by entry.
fn shown(page: &str) -> Vec<String> {
    let subjects = page.split("<strong>").skip(1).map(|rest| rest.split("</strong>").next().unwrap().to_owned());
    subjects.collect()
}

fn see(member: &Member, query: &str) -> Vec<String> {
    let page = member.get(&format!("/settings/activity?{query}"));
    assert_eq!(page.status, 200, "{query}");
    let page = page.text();
    if page.contains("There is nothing to show.") { vec![] } else { shown(&page) }
}

/// Puts entries into the log of the test's organisation, one for each minute before a day's end.
fn add(app: &TestApp, day: &str, action: &str, actor: &str, count: u32) {
    let id = app.clinic.organisation;
    let insert = format!(
        "INSERT INTO audit_entries (organisation_id, id, at, action, actor, subject)
         SELECT '{id}', gen_random_uuid(), timestamptz '{day} 23:59:30+00' - n * interval '1 minute', '{action}',
             nullif('{actor}', ''), '{action} ' || n FROM generate_series(0, {count} - 1) AS n"
    );
    app.database.connect().batch_execute(&insert).unwrap();
}

#[test]
fn the_log_is_searched_by_kind_person_and_day() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    add(&app, "2025-03-01", "key_created", "Grace 100%_sure", 2);
    add(&app, "2025-03-02", "signed_in", "Mary", 1);
    add(&app, "2025-03-02", "key_lent", "Mary", 1);
    assert_eq!(see(&ada, "kind=keys"), ["key_created 0", "key_created 1"]);
    assert_eq!(see(&ada, "kind=sign-ins&person=mary"), ["signed_in 0"]);
    assert_eq!(see(&ada, "person=MARY").len(), 2, "what a newer program wrote is found by everything but its kind");
    assert_eq!(see(&ada, "person=ada%40clinic").len(), 2, "whom it was done to: invited and joined");
    for (literal, found) in [("100%25_sure", 2), ("%25", 2), ("_", 4), ("100%25sure", 0), ("%5C", 0)] {
        assert_eq!(see(&ada, &format!("person={literal}")).len(), found, "{literal}");
    }
    assert_eq!(see(&ada, "from=2025-03-01&until=2025-03-01").len(), 2);
    assert_eq!(see(&ada, "from=2025-03-02&until=2025-03-02").len(), 2);
    assert_eq!(see(&ada, "until=2025-03-01&kind=keys&person=grace").len(), 2);
    // In Sydney, eleven hours ahead, 23:59 UTC is the next day.
    assert_eq!(see(&ada, "from=2025-03-01&until=2025-03-01&utc_offset=660"), [""; 0]);
    assert_eq!(see(&ada, "from=2025-03-02&until=2025-03-02&utc_offset=660").len(), 2);
    let wrong = ada.get("/settings/activity?from=1.3.2025");
    assert!(wrong.status == 422 && wrong.text().contains("A day must be like 2026-12-31."));
    assert!(wrong.text().contains("value=\"1.3.2025\""));
}

#[test]
fn the_log_is_read_in_both_directions_without_a_gap() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    add(&app, "2025-03-01", "key_created", "Grace", 120);
    let link = |page: &str, name: &str| {
        page.split("<a href=\"").skip(1).find_map(|rest| {
            let (address, rest) = rest.split_once('"')?;
            let text = rest.split_once('>')?.1.split("</a>").next()?;
            (text == name).then(|| address.replace("&#38;", "&"))
        })
    };
    let open = |path: &str| ada.get(path).text();
    let first = open("/settings/activity?kind=keys&person=grace");
    assert_eq!((shown(&first).len(), link(&first, "Newer")), (50, None));
    let second = open(&link(&first, "Older").unwrap());
    let third = open(&link(&second, "Older").unwrap());
    let all: Vec<_> = [&first, &second, &third].into_iter().flat_map(|page| shown(page)).collect();
    assert_eq!(all, (0..120).map(|number| format!("key_created {number}")).collect::<Vec<_>>());
    assert_eq!(link(&third, "Older"), None);
    assert_eq!(shown(&open(&link(&third, "Newer").unwrap())), shown(&second));
    let back = ada.get(&link(&second, "Newer").unwrap());
    assert_eq!((back.status, back.header("location")), (303, Some("/settings/activity?kind=keys&person=grace")));
    for nowhere in ["before=018f0000-0000-7000-8000-000000000000", "before=x", "after=x"] {
        let page = ada.get(&format!("/settings/activity?{nowhere}"));
        assert!(page.status == 404 || page.text().contains("There is nothing to show."), "{nowhere}");
    }
}

#[test]
fn the_file_holds_all_that_fits_and_nothing_that_a_spreadsheet_would_run() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let eve = app.member_of(&app.other_clinic(), "eve@elsewhere.example");
    add(&app, "2025-03-01", "key_created", "=HYPERLINK(\"https://evil.example\")", 2_500);
    add(&app, "2025-03-02", "key_revoked", "Zoë, \"Z\"\n2", 1);
    let file = ada.get("/settings/activity.csv?kind=keys");
    assert_eq!(file.header("content-type"), Some("text/csv; charset=utf-8; header=present"));
    let disposition = file.header("content-disposition").unwrap();
    assert!(disposition.starts_with("attachment; filename=\"activity-20") && disposition.ends_with(".csv\""));
    assert_eq!(file.header("cache-control"), Some("no-store"));
    let text = file.text();
    let text = text.strip_prefix('\u{FEFF}').unwrap();
    assert!(text.starts_with("\"Time (UTC)\",\"Who\",\"What\",\"To what\",\"Address\"\r\n"), "{}", &text[..200]);
    assert!(
        text.contains(
            "\"2025-03-02T23:59:30.000Z\",\"Zoë, \"\"Z\"\"\n2\",\"revoked the key\",\"key_revoked 0\",\"\"\r\n"
        )
    );
    assert_eq!(text.matches("\"'=HYPERLINK(").count(), 2_500);
    assert_eq!(text.matches("\r\n").count(), 1 + 2_501);
    assert!(!text.contains("\"=") && !text.contains("member_joined"));
    assert!(text.contains("\"key_created 2499\"") && !text.contains("There are older entries"));
    let foreign = eve.get("/settings/activity.csv").text();
    assert!(foreign.contains("eve@elsewhere.example") && !foreign.contains("HYPERLINK"));
    let empty = ada.get("/settings/activity.csv?person=nobody").text();
    assert_eq!(empty.lines().count(), 1, "{empty}");
    assert_eq!(ada.get("/settings/activity.csv?from=x").status, 404);

    add(&app, "2025-02-01", "key_created", "Grace", 7_500);
    let full = ada.get("/settings/activity.csv?kind=keys").text();
    assert_eq!(full.matches("\r\n").count(), 1 + 10_000 + 1);
    assert!(full.contains("\"There are older entries: a file holds 10,000. Choose fewer days to get them.\""));
    assert!(ada.get("/settings/activity").text().contains("at most the newest 10,000 entries"));
    let fewer = ada.get("/settings/activity.csv?kind=keys&until=2025-02-15").text();
    assert_eq!(fewer.matches("\r\n").count(), 1 + 7_500);
}

#[test]
fn a_browser_searches_the_log_and_keeps_what_it_downloads() {
    for browser in [Browser::start(), Browser::without_scripts()] {
        let Some(browser) = browser else { return };
        let app = TestApp::start();
        let folder = tempfile::tempdir().unwrap();
        let place = json!({ "behavior": "allow", "downloadPath": folder.path().to_str().unwrap() });
        browser.tell("Browser.setDownloadBehavior", &place);
        app.join(&browser, "Ada", "ada@clinic.example");
        add(&app, "2025-03-01", "key_created", "Grace", 60);
        browser.press("Activity");
        browser.fill("Person", "grace");
        browser.press("Apply");
        browser.wait_for("Show everything");
        assert!(!browser.text().contains("joined as"));
        assert_eq!(browser.value("Person"), "grace");
        browser.press("Older");
        browser.wait_for("key_created 59");
        browser.press("Newer");
        browser.wait_for("key_created 0");
        browser.press("Download CSV");
        let file = || {
            let mut files = folder.path().read_dir().unwrap().map(|file| file.unwrap().path());
            files.find(|file| file.extension().is_some_and(|extension| extension == "csv"))
        };
        wait_for("the file", || file().is_some());
        wait_for("all of it", || std::fs::read_to_string(file().unwrap()).unwrap().lines().count() == 61);
        assert!(browser.text().contains("Show everything"), "the page is still there");
    }
}

#[test]
fn the_page_says_what_it_was_asked_for() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let page = ada.get("/settings/activity?kind=members&from=2025-03-01").text();
    assert!(page.contains("<option value=\"members\" selected>Members</option>"), "{page}");
    assert_eq!(between(&page, "name=\"from\" type=\"date\" value=\"", "\""), "2025-03-01");
}
