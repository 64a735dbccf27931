//! Keys that nothing uses any more: found on the list by a number of days, and named as such on their pages.

use diesel::connection::SimpleConnection;

use crate::fixtures::{TestApp, in_each_browser};

/// Keys by name: how many days ago each was made and last used.
const KEYS: [(&str, i32, Option<i32>); 5] = [
    ("Busy", 400, Some(0)),
    ("New", 10, None),
    ("Never", 100, None),
    ("Quiet", 400, Some(45)),
    ("Silent", 400, Some(200)),
];

fn make_keys(app: &TestApp) {
    for (name, made, used) in KEYS {
        let (id, _) = app.clinic.key();
        let sql = format!(
            "UPDATE api_keys SET name = '{name}', created_at = now() - interval '{made} days 1 hour' WHERE id = '{id}';"
        );
        app.database.connect().batch_execute(&sql).unwrap();
        if let Some(used) = used {
            let sql = format!(
                "INSERT INTO key_uses (organisation_id, key_id, last_used_at)
                 SELECT organisation_id, id, now() - interval '{used} days 1 hour' FROM api_keys WHERE id = '{id}'"
            );
            app.database.connect().batch_execute(&sql).unwrap();
        }
    }
}

#[test]
fn keys_are_found_by_the_days_for_which_they_were_not_used() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    make_keys(&app);
    let found = |query: &str| {
        let page = ada.get(&format!("/settings/api-keys?{query}"));
        assert_eq!(page.status, 200, "{query}");
        let page = page.text();
        let mut names: Vec<_> = KEYS
            .map(|(name, ..)| name)
            .into_iter()
            .filter(|name| page.contains(&format!(">{name}</a><code>")))
            .collect();
        names.sort_unstable();
        names
    };
    assert_eq!(found("").len(), 5);
    assert_eq!(found("unused=30"), ["Never", "Quiet", "Silent"]);
    assert_eq!(found("unused=90"), ["Never", "Silent"]);
    assert_eq!(found("unused=180&sort=name"), ["Silent"]);
    assert_eq!(found("unused=90&q=sil"), ["Silent"]);
    assert_eq!(found("unused=90&show=revoked"), [""; 0]);
    assert_eq!(found("unused=9"), ["Never", "New", "Quiet", "Silent"], "any number");
    // What is no number of days leaves nothing out, and says so.
    for wrong in ["unused=x", "unused=-1", "unused=0", "unused=99999999999"] {
        let page = ada.get(&format!("/settings/api-keys?{wrong}"));
        assert_eq!(page.status, 422, "{wrong}");
        assert!(page.text().contains("Enter a number of days from 1 to 3650."), "{wrong}");
    }
    let page = ada.get("/settings/api-keys?unused=90").text();
    assert!(page.contains("unused=90\">Silent</a>"), "a key's page leads back to the search: {page}");
}

#[test]
fn a_person_filters_by_days_and_the_page_of_a_key_says_how_long() {
    in_each_browser(|app, browser| {
        make_keys(app);
        browser.open(&app.url("/settings/api-keys?sort=name"));
        let _ = browser.run("document.querySelector('.find details').open = true");
        browser.fill("Days without use", "90");
        browser.press("Apply");
        browser.wait_for("Silent");
        assert!(!browser.text().contains("Busy") && !browser.text().contains("Quiet"), "{}", browser.text());
        assert_eq!(browser.value("Days without use"), "90");
        browser.press("Silent");
        browser.wait_for("Unused for 200 days");
        browser.press("API keys");
        browser.press("Never");
        browser.wait_for("Never used in 100 days");
    });
}
